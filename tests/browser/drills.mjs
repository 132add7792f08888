// The life of a drill through the page of a real server, by mouse: palpation is found, failed and given up.
//
//     node tests/browser/drills.mjs ADDRESS FOLDER PLACE CHECK…
//
// PLACE is JSON: over the middle of what is hidden, [x, y, z] in metres. Checks follow each other in one session.
// Pictures go into FOLDER, figures to stdout; `tests/browser/test_drills.py` judges both.

import { join } from "node:path";
import { later, openBrowser, runChecks, started, until } from "./browser.mjs";

const [address, folder, text, ...wanted] = process.argv.slice(2);
const place = JSON.parse(text);
const PIN = 1;

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), timeout: 60_000 });
const drill = (page) => page.evaluate(() => window.viscera.drill());
const click = (page, name) => page.locator("#drill").getByRole("button", { name, exact: true }).click();

async function start(page, name = "Start") {
  await click(page, name);
  await until(page, (v) => v.drill()?.phase === "running", null, "the drill runs");
}

/** Sticks a pin so many metres aside of the place. */
async function stick(page, aside, count) {
  const at = await page.evaluate(([x, y, z]) => window.viscera.project(x, y, z), [place[0] + aside, place[1], place[2]]);
  await page.keyboard.press(String(PIN + 1));
  await page.mouse.move(at.x, at.y);
  await until(page, (v, number) => v.tools()[number].active, PIN, "the pin comes in");
  await later(300);
  await page.mouse.down();
  await until(page, (v, number) => v.measures().pins >= number, count, `pin ${count} sticks`);
  await page.mouse.up();
  await until(page, (v, number) => v.tools()[number].grip === 0, PIN, "the handle is let go");
}

async function declare(page, words) {
  await page.locator("#drill summary.go").click();
  await page.getByRole("button", { name: words, exact: true }).click();
  await until(page, (v) => v.drill()?.phase === "ended", null, "the drill ends");
  await page.mouse.move(640, 690);
  await later(600);
}

/** Waiting, started, found: what the result says stays while the world goes on. */
async function found(page) {
  await shoot(page, "waiting");
  const waiting = await drill(page);
  await start(page);
  await stick(page, 0, 1);
  await shoot(page, "running");
  const running = await drill(page);
  await declare(page, "fairly sure");
  const ended = await drill(page);
  await page.locator(".drill-result .advice").waitFor();
  await page.locator(".score summary").click();
  const rows = await page.locator(".score tr").allInnerTexts();
  await shoot(page, "found");
  await later(1500);
  return { waiting, running, ended, after: await drill(page), rows, markers: await page.evaluate(() => window.viscera.markers()) };
}

/** The next trial hides it elsewhere; a fourth pin is one too many. */
async function failed(page) {
  const before = await page.locator(".drill-result header .note").textContent();
  await click(page, "Next trial");
  await until(page, (v) => v.drill()?.phase === "running", null, "the next trial runs");
  for (let pin = 1; pin <= 4; pin++) await stick(page, 0.01 * pin - 0.025, pin);
  await until(page, (v) => v.drill()?.phase === "ended", null, "the fourth pin ends it");
  await page.mouse.move(640, 690);
  await later(400);
  await shoot(page, "failed");
  return { before, ended: await drill(page), title: await page.locator(".drill-result header").innerText() };
}

async function givenUp(page) {
  await start(page, "Same again");
  await page.getByText("Here it is…").click();
  const told = await page.locator(".declare-list .note").textContent();
  const refused = await page.locator(".declare-list button").first().isDisabled();
  await page.keyboard.press("Escape");
  const closed = !(await page.locator(".declare-list").isVisible());
  await click(page, "Give up");
  await until(page, (v) => v.drill()?.phase === "ended", null, "the drill ends");
  await later(400);
  await shoot(page, "given-up");
  return { told, refused, closed, ended: await drill(page), title: await page.locator(".drill-result header").innerText() };
}

/** The run so far, watched again: the slider jumps, and one goes on from there. */
async function watched(page) {
  await page.locator('button[aria-label="Recordings"]').click();
  await page.locator(".recording-list .scenario-card").first().click();
  for (let wait = 0; wait < 90 && !(await page.locator("#watch").isVisible()); wait++) await later(1000);
  await until(page, (v) => v.frame.time > 0.5, null, "it plays");
  await page.getByRole("button", { name: "Pause" }).click();
  const jumps = [];
  for (const at of [2.0, 0.5, 1.5]) {
    const begun = Date.now();
    await page.locator("#watch input").fill(String(at));
    await until(page, (v, second) => Math.abs(v.frame.time - second) < 0.02, at, `it jumps to ${at} s`);
    jumps.push((Date.now() - begun) / 1000);
  }
  await page.getByRole("button", { name: "Copy link" }).click();
  const linked = page.url();
  await shoot(page, "watched");
  await page.getByRole("button", { name: "Try again from here" }).click();
  for (let wait = 0; wait < 90 && (await page.locator("#watch").isVisible()); wait++) await later(1000);
  await until(page, (v) => v.frame.time > 1.6, null, "it goes on live from there");
  await shoot(page, "again");
  return { jumps, linked, left: page.url() };
}

await started(address);
const { context, close } = await openBrowser();
const all = { found, failed, given_up: givenUp, watched };
await runChecks(context, `${address}?detail=plain`, Object.fromEntries(wanted.map((name) => [name, all[name]])));
await close();
