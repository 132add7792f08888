// The operation through the page of a real server, by mouse and keys alone: hold, free, clip, cut.
//
//     node tests/browser/operation.mjs ADDRESS FOLDER PLACES
//
// PLACES is JSON of places in the tissue at rest [m]: paths through the fold, places for clips, places to cut. Pictures of
// each phase go into FOLDER, measures to stdout; `tests/browser/test_operation.py` judges both.

import { join } from "node:path";
import { later, openBrowser, openPage, started } from "./browser.mjs";

const [address, folder, given] = process.argv.slice(2);
const places = JSON.parse(given);
await started(address);
const { context, close } = await openBrowser({ width: 1280, height: 800 });
const { page, errors } = await openPage(context, `${address}?detail=plain`);
const found = {};

/** Simulated seconds, however slow the machine is. */
async function simulated(seconds) {
  const time = () => page.evaluate(() => window.viscera.frame.time);
  for (const end = (await time()) + seconds; (await time()) < end; ) await later(30);
}

async function point([x, y, z]) {
  const at = await page.evaluate(([a, b, c]) => window.viscera.project(a, b, c), [x, y, z]);
  await page.mouse.move(at.x, at.y);
}

async function wheel(notches) {
  for (let i = 0; i < Math.abs(notches); i++) {
    await page.mouse.wheel(0, 100 * Math.sign(notches));
    await simulated(0.04);
  }
}

async function shoot(name) {
  await page.screenshot({ path: join(folder, `${name}.png`), timeout: 90_000 });
  found[name] = await page.evaluate(() => window.viscera.measures());
}

async function aside() {
  await page.mouse.move(640, 120);
  await simulated(0.3);
}

async function hold() {
  await page.keyboard.press("1");
  await point(places.hold);
  await simulated(0.8);
  await wheel(-7);
  await page.mouse.down();
  await simulated(0.6);
  await wheel(6);
  await simulated(0.4);
  await page.keyboard.press("2"); // while the button is down: it stays clamped
  await page.mouse.up();
  await simulated(0.3);
}

async function free() {
  for (const path of places.fold) {
    await point(path[0]);
    await simulated(0.6);
    await wheel(-2);
    await page.mouse.down();
    for (let k = 1; k < path.length; k++) {
      await point(path[k]);
      await simulated(0.2);
    }
    await page.mouse.up();
    await wheel(2);
  }
  await aside();
}

async function clip() {
  await page.keyboard.press("3");
  for (const place of places.clips) {
    await point(place);
    await simulated(0.8);
    await page.mouse.down();
    await simulated(0.4);
    await page.mouse.up();
    await simulated(0.2);
  }
  await aside();
}

async function cut() {
  await page.keyboard.press("4");
  await page.keyboard.down("e"); // a quarter turn: jaws above and below the tube
  await simulated(0.87);
  await page.keyboard.up("e");
  for (const place of places.cuts) {
    await point(place);
    await simulated(0.8);
    await wheel(-6);
    await page.mouse.down();
    await simulated(0.5);
    await page.mouse.up();
    await wheel(6);
  }
  await aside();
}

await later(1000);
await shoot("operation-begin");
for (const [name, phase] of Object.entries({ hold, free, clip, cut })) {
  await phase();
  await shoot(`operation-${name}`);
}
console.log(JSON.stringify({ found, errors, fps: await page.evaluate(() => window.viscera.stats()) }));
await close();
