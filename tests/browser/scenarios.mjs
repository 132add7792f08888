// One scenario of a real server, through the page: what its instruments do is seen in the picture and in the measures.
//
//     node tests/browser/scenarios.mjs ADDRESS FOLDER SCENARIO [PLACES]
//
// SCENARIO is the check's name; `puffs` is of the scenario smoke.
// PLACES is JSON: the vessels of the scenarios bleeding and hysteroscopy, each [x, y, z] in metres.
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

/** What a volume holds, as the page has it: the sum of its densities. */
const density = (page, name) =>
  page.evaluate((volume) => window.viscera.texels(volume).reduce((sum, byte, at) => (at % 4 ? sum : sum + byte), 0), name);

/** The hook held still chars and smokes; the evacuator over it draws the smoke away. */
async function smoke(page) {
  const clear = await density(page, "pad.smoke");
  await bare(page, "smoke-before");
  await press(page, 0, TRACK[0]);
  for (const view of [99.5, 98, 96]) await until(page, (v, most) => v.measures().view < most, view, `smoke leaves ${view} % of the view`);
  await page.mouse.up();
  await shoot(page, "smoke-hook");
  await bare(page, "smoke-hazy");
  const hazy = await density(page, "pad.smoke");
  const dim = (await page.evaluate(() => window.viscera.measures())).view;
  await press(page, 1, TRACK[0]);
  for (const share of [0.05, 0.15, 0.3])
    await until(page, (v, view) => v.measures().view > view, dim + share * (100 - dim), `the evacuator clears ${share} of the haze`);
  await shoot(page, "smoke-evacuator");
  await page.mouse.up();
  return { field: FIELD, track: TRACK, clear, hazy, cleared: await density(page, "pad.smoke"), measures: await page.evaluate(() => window.viscera.measures()) };
}

/** Another model of smoke: the button is pressed, the hook burns, puffs rise and fade; then the flow again, with clear air. */
async function puffs(page) {
  const choose = async (name) => {
    await page.evaluate(() => document.querySelectorAll("details.settings-group").forEach((group) => (group.open = true)));
    await page.getByRole("button", { name, exact: true }).click();
  };
  await choose("Puffs");
  await until(page, (v) => v.parameters().smoke_model === 1, null, "the setting arrives");
  await press(page, 0, TRACK[0]);
  await until(page, (v) => v.texels("pad.smoke").some((byte, at) => at % 4 === 0 && byte > 8), null, "puffs are drawn");
  await later(2500);
  await page.mouse.up();
  await bare(page, "puffs");
  const most = await density(page, "pad.smoke");
  await until(page, (v) => !v.texels("pad.smoke").some((byte, at) => at % 4 === 0 && byte > 0), null, "they are gone after their life");
  await choose("Flow");
  await until(page, (v) => v.parameters().smoke_model === 0, null, "and back");
  await later(500);
  const cleared = await density(page, "pad.smoke");
  await press(page, 0, TRACK[0]);
  await until(page, (v) => v.texels("pad.smoke").some((byte, at) => at % 4 === 0 && byte > 8), null, "the flow carries smoke again");
  await page.mouse.up();
  return { most, cleared };
}

/** Two vessels cloud the saline. Current seals one and the other; suction takes the cloud away, and the view clears. */
async function hysteroscopy(page) {
  const vessels = JSON.parse(places), IRRIGATOR = 1, SUCKER = 2;
  await bare(page, "hysteroscopy-begin");
  for (const view of [95, 88, 80]) await until(page, (v, most) => v.measures().view < most, view, `blood leaves ${view} % of the view`);
  await bare(page, "hysteroscopy-clouded");
  await pressOn(page, IRRIGATOR, vessels[0]);
  await until(page, (v) => v.measures().flow_in > 300, null, "the irrigator adds to the pump's 120 mL/min");
  await shoot(page, "hysteroscopy-irrigator");
  await page.mouse.up();
  for (const [number, vessel] of vessels.entries()) {
    await pressOn(page, 0, vessel);
    await until(page, (v, left) => v.measures().open_vessels === left, vessels.length - 1 - number, `current seals vessel ${number + 1}`);
    await shoot(page, `hysteroscopy-sealed-${number + 1}`);
    await page.mouse.up();
  }
  const dim = (await page.evaluate(() => window.viscera.measures())).view;
  const clouded = await density(page, "wall.saline");
  await bare(page, "hysteroscopy-dim");
  await pressOn(page, SUCKER, vessels[1]);
  for (const share of [0.04, 0.08, 0.12])
    await until(page, (v, view) => v.measures().view > view, dim + share * (100 - dim), `the view clears by ${share}`);
  await page.mouse.up();
  await bare(page, "hysteroscopy-cleared");
  return { field: FIELD, dim, clouded, cleared: await density(page, "wall.saline"), measures: await page.evaluate(() => window.viscera.measures()) };
}

const CHECKS = { cautery, bleeding, river, smoke, puffs, hysteroscopy };
await started(address);
const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { [scenario]: CHECKS[scenario] });
await close();
