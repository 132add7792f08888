// A drill of any scenario through the page of a real server, by mouse: started and given up; failed where that is easy.
//
//     node tests/browser/every_drill.mjs ADDRESS FOLDER CHECK…
//
// Pictures go into FOLDER, figures to stdout; `tests/browser/test_every_drill.py` judges both.

import { join } from "node:path";
import { later, openBrowser, runChecks, started, until } from "./browser.mjs";

const [address, folder, ...wanted] = process.argv.slice(2);
const MIDDLE = [626, 330]; // of what panels leave free at 1280 × 720
const LONGEST = 240_000; // [ms] until a drill has failed, on a slow machine

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), timeout: 90_000 });
const drill = (page) => page.evaluate(() => window.viscera.drill());
const click = (page, name) => page.locator("#drill").getByRole("button", { name, exact: true }).click();
const marks = (page) => page.locator(".measure.met, .measure.lost").count();

async function start(page, name) {
  await click(page, name);
  await until(page, (v) => v.drill()?.phase === "running", null, "the drill runs");
}

async function result(page, name) {
  await page.locator(".drill-result .advice").waitFor({ timeout: 60_000 });
  await shoot(page, name);
  return { ended: await drill(page), title: await page.locator(".drill-result header").innerText() };
}

/** Nothing is ticked before the start; something is touched; given up. */
async function givenUp(page) {
  const before = await marks(page);
  await start(page, "Start");
  await page.mouse.move(...MIDDLE);
  await later(1500);
  await click(page, "Give up");
  await until(page, (v) => v.drill()?.phase === "ended", null, "the drill ends");
  return { before, ...(await result(page, "given-up")) };
}

/** The first instrument, its handle down, goes to and fro where it should not, until the drill is over. */
async function failed(page) {
  await start(page, "Same again");
  const [x, y] = MIDDLE;
  await page.mouse.move(x, y + 60);
  await until(page, (v) => v.tools()[0].active, null, "the instrument comes in");
  await page.mouse.down();
  for (const end = Date.now() + LONGEST; Date.now() < end && (await drill(page)).phase === "running"; ) {
    for (const [dx, dy] of [[60, 60], [60, 100], [-60, 100], [-60, 60]]) {
      await page.mouse.move(x + dx, y + dy, { steps: 12 });
      await later(200);
    }
  }
  await page.mouse.up();
  await page.mouse.move(640, 690);
  return result(page, "failed");
}

await started(address);
const { context, close } = await openBrowser();
const all = { given_up: givenUp, failed };
await runChecks(context, `${address}?detail=plain`, Object.fromEntries(wanted.map((name) => [name, all[name]])));
await close();
