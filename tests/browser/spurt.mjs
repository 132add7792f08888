// Spurt through the page of a real server, by mouse: frame by frame, pressed on, sucked, clipped.
//
//     node tests/browser/spurt.mjs ADDRESS FOLDER PLACE
//
// PLACE is JSON: the artery, [x, y, z] in metres. Checks follow each other in one session. Pictures go into FOLDER,
// figures to stdout; `tests/browser/test_spurt_page.py` judges both.

import { join } from "node:path";
import { later, openBrowser, runChecks, started, until } from "./browser.mjs";

const [address, folder, text] = process.argv.slice(2);
const place = JSON.parse(text);
const [PRESS, SUCTION, CLIPS] = [0, 1, 3];
const FRAMES = 8;

const shoot = (page, name, clip) => page.screenshot({ path: join(folder, `${name}.png`), clip, timeout: 90_000 });
const measures = (page) => page.evaluate(() => window.viscera.measures());
const pixel = (page, x, y, z) => page.evaluate((at) => window.viscera.project(...at), [x, y, z]);

async function take(page, tool, at) {
  await page.keyboard.press(String(tool + 1));
  await page.mouse.move(at.x, at.y, { steps: 8 });
  await until(page, (v, number) => v.tools()[number].active, tool, `instrument ${tool + 1} comes in`);
}

/** Paused, then one frame after the other: drops, film and pools hand over without a jump. */
async function frames(page) {
  await until(page, (v) => v.measures().blood_lost > 0.3, null, "it has spurted");
  await page.keyboard.press("p");
  await later(600);
  const at = await pixel(page, ...place);
  const clip = { x: Math.max(0, at.x - 230), y: Math.max(0, at.y - 230), width: 460, height: 400 };
  for (let number = 0; number < FRAMES; number++) {
    await page.keyboard.press(".");
    await later(700);
    await shoot(page, `frame-${number}`, clip);
  }
  await page.keyboard.press("p");
  return measures(page);
}

/** The swab on the artery, deeper by the wheel, holds it back. */
async function press(page) {
  const free = (await measures(page)).bleeding;
  await take(page, PRESS, await pixel(page, ...place));
  for (let turn = 0; turn < 40 && (await measures(page)).bleeding > 0.7 * free; turn++) {
    await page.mouse.wheel(0, -60);
    await later(250);
  }
  await until(page, (v, most) => v.measures().bleeding < most, 0.7 * free, "the swab holds it back");
  await shoot(page, "pressed");
  return { free, pressed: (await measures(page)).bleeding, soaked: (await measures(page)).soaked };
}

/** Suction beside the artery takes blood. */
async function suck(page) {
  const [x, y, z] = place;
  const before = (await measures(page)).sucked;
  await take(page, SUCTION, await pixel(page, x + 0.006, y - 0.004, z));
  await page.mouse.down();
  await until(page, (v, more) => v.measures().sucked > more, before + 0.01, "suction takes blood");
  await shoot(page, "sucked");
  await page.mouse.up();
  return { sucked: (await measures(page)).sucked };
}

/** The clip applier closes it. */
async function clip(page) {
  await take(page, CLIPS, await pixel(page, ...place));
  await later(400);
  await page.mouse.down();
  await until(page, (v) => v.measures().open_vessels === 0, null, "the clip closes it");
  await page.mouse.up();
  await page.mouse.move(640, 690);
  await later(1500);
  await shoot(page, "clipped");
  return measures(page);
}

await started(address);
const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { frames, press, suck, clip });
await close();
