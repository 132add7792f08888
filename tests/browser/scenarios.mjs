// One scenario of a real server, through the page: what its instruments do is seen in the picture and in the measures.
//
//     node tests/browser/scenarios.mjs ADDRESS FOLDER SCENARIO [PLACES]
//
// PLACES is JSON: the vessels of the scenario bleeding, each [x, y, z] in metres.
// Pictures go into FOLDER, figures to stdout; `tests/browser/test_browser.py` judges both.

import { join } from "node:path";
import { assert, later, openBrowser, runChecks, started, until } from "./browser.mjs";

const [address, folder, scenario, places = "[]"] = process.argv.slice(2);
const OUTSIDE = [1120, 90]; // over the force panel
const FIELD = { x: 300, y: 70, width: 660, height: 490 }; // what panels leave free at 1280 × 720
const TRACK = [[560, 390], [600, 390]]; // on the tissue

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), clip: FIELD, timeout: 60_000 });

/** The picture without instruments, light and shadow of theirs included. */
async function bare(page, name) {
  await page.mouse.move(...OUTSIDE);
  await until(page, (v) => v.tools().every((tool) => !tool.active), null, "the tools withdraw when the cursor leaves");
  await page.evaluate(() => window.viscera.showInstruments(false));
  await later(500);
  await shoot(page, name);
  await page.evaluate(() => window.viscera.showInstruments(true));
}

const MILLIMETRES = 2.5; // how near to a vessel an instrument is brought; clips reach further
const SUCTION = 0, FORCEPS = 2, CLIPS = 3;

/** Takes an instrument to a vessel, as it lies in the picture, and presses its handle. */
async function pressOn(page, tool, vessel) {
  const place = await page.evaluate((at) => window.viscera.project(...at), vessel);
  const inside = place.x > FIELD.x && place.x < FIELD.x + FIELD.width && place.y > FIELD.y && place.y < FIELD.y + FIELD.height;
  assert(inside, `the vessel is drawn at ${place.x}, ${place.y}, behind a panel`);
  await page.mouse.move(place.x, place.y);
  await page.keyboard.press(String(tool + 1));
  await until(
    page,
    (v, { number, at, near }) => {
      const hand = v.tools()[number];
      return hand.active && Math.hypot(hand.position[0] - at[0], hand.position[1] - at[1]) < near;
    },
    { number: tool, at: vessel, near: 1e-3 * MILLIMETRES },
    `instrument ${tool + 1} comes to the vessel`,
  );
  await page.mouse.down();
}

/** The pedal goes down over a place, with this instrument. */
async function press(page, tool, place) {
  await page.mouse.move(...place);
  await page.keyboard.press(String(tool + 1));
  await until(page, (v, number) => v.tool() === number, tool, `key ${tool + 1} takes instrument ${tool + 1}`);
  await until(page, (v, number) => v.tools()[number].active, tool, "it comes in");
  await page.mouse.down();
  await until(page, (v, number) => v.tools()[number].grip === 1, tool, "its pedal or handle goes down");
}

/** Draws a line with the hook under current: it whitens, and is measured. */
async function cautery(page) {
  await bare(page, "cautery-before");
  await press(page, 0, TRACK[0]);
  const [from, to] = TRACK;
  for (let step = 0; step <= 4; step++) {
    await page.mouse.move(from[0] + ((to[0] - from[0]) * step) / 4, from[1] + ((to[1] - from[1]) * step) / 4);
    const least = 4 * step; // [mm²]
    await until(page, (v, area) => v.measures().coagulated > area, least, `more than ${least} mm² are coagulated`);
  }
  await page.mouse.up();
  await bare(page, "cautery-after");
  return { field: FIELD, track: TRACK, measures: await page.evaluate(() => window.viscera.measures()) };
}

/** Waits for blood; pressing beside the vessels stops nothing, a clip stops the first, the forceps the second. */
async function bleeding(page) {
  await until(page, (v) => v.measures().blood_lost > 0.15, null, "0.15 mL of blood are lost");
  await bare(page, "bleeding");
  const red = await page.evaluate(() => {
    const film = window.viscera.texels("pad.film");
    let deep = 0;
    for (let i = 0; i < film.length; i += 4) if (film[i] > 60 && film[i + 1] > 128) deep += 1;
    return deep;
  });
  assert(red > 200, `${red} texels under blood`);
  const vessels = JSON.parse(places);
  const open = async () => (await page.evaluate(() => window.viscera.measures())).open_vessels;
  const aside = vessels[0].map((value, axis) => 0.5 * (value + vessels[1][axis]));
  await pressOn(page, CLIPS, aside);
  await until(page, (v, number) => v.tools()[number].grip === 1, CLIPS, "the handle goes down");
  await later(500);
  const beside = await open();
  await page.mouse.up();
  await pressOn(page, CLIPS, vessels[0]);
  await until(page, (v) => v.measures().open_vessels === 1, null, "a clip closes the artery");
  await page.mouse.up();
  await pressOn(page, SUCTION, vessels[1]);
  await later(2000);
  const sucked = await open();
  await page.mouse.up();
  await pressOn(page, FORCEPS, vessels[1]);
  await until(page, (v) => v.measures().open_vessels === 0, null, "current closes the vein");
  await page.mouse.up();
  return { field: FIELD, red, beside, sucked, measures: await page.evaluate(() => window.viscera.measures()) };
}

/** Water comes, is drawn, and is counted. */
async function river(page) {
  const first = await page.evaluate(() => window.viscera.particles());
  await shoot(page, "river-before");
  await until(page, (v, count) => v.particles() > count + 400, first, "400 particles more are drawn");
  await shoot(page, "river-after");
  return { field: FIELD, particles: await page.evaluate(() => window.viscera.particles()), measures: await page.evaluate(() => window.viscera.measures()) };
}

const CHECKS = { cautery, bleeding, river };
await started(address);
const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { [scenario]: CHECKS[scenario] });
await close();
