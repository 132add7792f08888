// The operation through the page of a real server, by mouse and keys alone: given up, failed, and done, from the first hold to taking out.
//
//     node tests/browser/operation.mjs ADDRESS FOLDER PLACES CHECK…
//
// PLACES is JSON of places in the tissue at rest [m], by the phase that goes there, and of where the trocars are. The hand
// sees where they are now by the surface that the page draws, and how far it is by the measures in the page. It works in slow
// motion, by the page's own button, since a page that draws in software moves a pointer in steps. Pictures of each phase go
// into FOLDER, measures to stdout; `tests/browser/test_operation.py` judges both.

import { join } from "node:path";
import { later, started, until } from "./browser.mjs";
import { operatingPage } from "./operating_page.mjs";
import { HURT, phasesOf } from "./operation_phases.mjs";

const [address, folder, given, ...wanted] = process.argv.slice(2);
const places = JSON.parse(given);
await started(address);
const { page, errors, hand, shoot, close } = await operatingPage(address, places);
const QUICK = 12; // pictures per second, from which on a hand needs less slow motion
const OPENED = ["hold", "open"]; // phases of the short check

const drill = () => page.evaluate(() => window.viscera.drill());
const click = (name) => page.locator("#drill").getByRole("button", { name, exact: true }).click();
const phases = phasesOf(hand, places); // by name, in their order

async function note(name) {
  await shoot(join(folder, `operation-${name}.png`));
  const now = await hand.look();
  const noted = { ...now.measures, at: now.time, force_of_grasper: now.tools[0].force, fps: (await page.evaluate(() => window.viscera.stats())).framesPerSecond };
  console.error(name, JSON.stringify(noted));
  return noted;
}

/** The trial begins, with the patient as it was; the hand works in slow motion. */
async function start() {
  await click((await drill()).phase === "ended" ? "Same again" : "Start");
  await until(page, (v) => v.drill()?.phase === "running" && v.drill().time < 5, null, "the drill runs");
  await page.evaluate(() => [delete window.atRest, delete window.nearest]);
  await later(1500);
  const { framesPerSecond } = await page.evaluate(() => window.viscera.stats());
  await hand.speed(framesPerSecond > QUICK ? "0.25×" : "0.1×");
}

/** The result as the page shows it, once the trial has ended. */
async function result(name) {
  await until(page, (v) => v.drill()?.phase === "ended", null, `the trial ends: ${name}`);
  await page.locator(".drill-result .advice").waitFor();
  await note(name);
  const card = page.locator(".drill-result");
  return { ended: await drill(), title: await card.locator("header").innerText(), words: await card.innerText() };
}

/** One phase after the other, until the trial is over; its result then covers the field, and the hand finds nothing there. */
async function work(names) {
  const found = {};
  for (const name of names) {
    const trouble = await phases[name]().catch((error) => error);
    if ((await drill()).phase === "ended") break;
    if (trouble) throw trouble;
    found[name] = await note(name);
  }
  return found;
}

const CHECKS = {
  opened: () => work(OPENED),
  given_up: async () => {
    await start();
    await work(["hold"]);
    await click("Give up");
    return result("given-up");
  },
  failed: async () => {
    await start();
    await work([HURT]);
    return result("failed");
  },
  done: async () => {
    await start();
    const seen = await work(Object.keys(phases).filter((name) => name !== HURT));
    return { seen, ...(await result("done")) };
  },
};

const found = {};
for (const name of wanted) found[name] = await CHECKS[name]();
console.log(JSON.stringify({ found, errors, fps: await page.evaluate(() => window.viscera.stats()) }));
await close();
