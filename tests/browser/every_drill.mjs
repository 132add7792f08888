// A drill of any scenario through the page of a real server, by mouse: started and given up, failed, done.
//
//     node tests/browser/every_drill.mjs ADDRESS FOLDER SCENARIO PLACES CHECK…
//
// PLACES is JSON: what the hand has to know (`hands.mjs`). Checks follow each other in one session. Pictures go into FOLDER,
// figures to stdout; `tests/browser/test_every_drill.py` judges both.

import { join } from "node:path";
import { later, openBrowser, runChecks, started, until } from "./browser.mjs";
import { HANDS, untilEnded } from "./hands.mjs";

const [address, folder, scenario, text, ...wanted] = process.argv.slice(2);
const places = JSON.parse(text);
const hands = HANDS[scenario];
const MIDDLE = [626, 330]; // of what panels leave free at 1280 × 720
const ASIDE = [640, 700];

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), timeout: 90_000 });
const drill = (page) => page.evaluate(() => window.viscera.drill());
const click = (page, name) => page.locator("#drill").getByRole("button", { name, exact: true }).click();
const marks = (page) => page.locator(".measure.met, .measure.lost").count();

/** By what the page offers now: on the result of a trial, or before the first one. */
async function start(page, level) {
  const again = level === undefined ? "Same again" : "Start again";
  if (level !== undefined) await click(page, level);
  const ended = (await drill(page))?.phase === "ended";
  await click(page, ended ? again : "Start");
  await until(page, (v) => v.drill()?.phase === "running", null, "the drill runs");
}

async function result(page, name) {
  await page.mouse.move(...ASIDE);
  await untilEnded(page);
  await page.locator(".drill-result .advice").waitFor({ timeout: 60_000 });
  await later(500);
  await shoot(page, name);
  const card = page.locator(".drill-result");
  return { ended: await drill(page), title: await card.locator("header").innerText(), words: await card.innerText() };
}

/** Nothing is ticked before the start; something is touched; given up. */
async function givenUp(page) {
  const before = await marks(page);
  await start(page);
  await page.mouse.move(...MIDDLE);
  await later(1500);
  await shoot(page, "running");
  await click(page, "Give up");
  return { before, ...(await result(page, "given-up")) };
}

async function failed(page) {
  await start(page, hands.level);
  await hands.failed(page, places);
  return result(page, "failed");
}

async function done(page) {
  await start(page, hands.level === undefined ? undefined : "Standard");
  await hands.done(page, places);
  await page.mouse.move(...ASIDE);
  await later(200);
  const at = await page.evaluate(() => window.viscera.measures());
  await shoot(page, "before-done");
  return { at, ...(await result(page, "done")) };
}

await started(address);
const { context, close } = await openBrowser({ scale: 0.5 });
const all = { given_up: givenUp, failed, done };
await runChecks(context, `${address}?detail=plain`, Object.fromEntries(wanted.map((name) => [name, all[name]])));
await close();
