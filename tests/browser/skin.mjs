// The page against the stand-in server: burns and blood on the tissue, temperatures, tables, instruments that do something.
//
//     node tests/browser/skin.mjs ADDRESS FOLDER
//
// Pictures go into FOLDER, figures to stdout; `tests/browser/test_browser.py` judges both.

import { join } from "node:path";
import { assert, later, openBrowser, runChecks, until } from "./browser.mjs";

const [address, folder] = process.argv.slice(2);
const make = (name) => fetch(new URL(`/fake/${name}`, address), { method: "POST" });
const SPOT = [0.012, -0.008]; // where `char` and `film` paint, on the top [m]
const AWAY = [-0.024, -0.008]; // where they do not
const FIELD = { x: 300, y: 70, width: 660, height: 490 };
const OUTSIDE = [1120, 90];

/** The top is uneven: its highest vertex over a place is where that place is seen. */
const onScreen = (page, spot) => page.evaluate(([x, y]) => {
  const p = window.viscera.vertices("tissue");
  let top = 0;
  for (let i = 0; i < p.length; i += 3) if (Math.hypot(p[i] - x, p[i + 1] - y) < 0.0016) top = Math.max(top, p[i + 2]);
  return window.viscera.project(x, y, top);
}, spot);
const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), clip: FIELD });

/** What the texture has now: its largest char and thickest film. */
const painted = (page, name, channel) =>
  page.evaluate(([texture, byte]) => window.viscera.texels(texture).reduce((most, value, i) => (i % 4 === byte ? Math.max(most, value) : most), 0), [name, channel]);

async function paint(page, name, texture, channel) {
  await make(name);
  for (let i = 0; i < 200 && ((await painted(page, texture, channel)) > 100) === (name === "clean"); i++) await later(50);
  const drawn = await page.evaluate(() => window.viscera.stats().framesDrawn);
  await until(page, (v, old) => v.stats().framesDrawn > old + 1, drawn, `pictures with ${name} are drawn`);
}

/** Nothing, char, nothing, blood: pictures of the tissue alone. */
async function paintings(page) {
  await page.mouse.move(...OUTSIDE);
  await page.evaluate(() => window.viscera.showInstruments(false));
  await paint(page, "clean", "burn", 2);
  await shoot(page, "skin-clean");
  await paint(page, "char", "burn", 2);
  await shoot(page, "skin-char");
  await page.keyboard.press("t");
  await page.locator(".legend").waitFor();
  await later(400);
  await shoot(page, "skin-heat");
  await page.keyboard.press("t");
  await page.locator(".legend").waitFor({ state: "hidden" });
  await paint(page, "clean", "burn", 2);
  await shoot(page, "skin-again");
  await paint(page, "film", "film", 0);
  await shoot(page, "skin-film");
  const particles = await page.evaluate(() => window.viscera.particles());
  return { field: FIELD, spot: await onScreen(page, SPOT), away: await onScreen(page, AWAY), particles };
}

/** An edit of the table is in force and in the picture; a wrong one is refused and taken back. */
async function table(page) {
  await page.mouse.move(...OUTSIDE);
  await page.evaluate(() => window.viscera.showInstruments(false));
  await paint(page, "char", "burn", 2);
  await page.getByRole("heading", { name: "Burn stages" }).click();
  const last = page.getByLabel("Colour, row 6");
  await last.fill("#20d040");
  await until(page, (v) => v.tables().burn_stages[5][1] === 0x20d040, null, "the server has the new colour");
  await later(500);
  await shoot(page, "skin-green");
  const level = page.getByLabel("From level, row 3");
  await level.fill("0.1");
  await level.press("Enter");
  await page.locator(".banner", { hasText: "Levels must rise" }).waitFor();
  await page.getByRole("button", { name: "Dismiss" }).click();
  for (let i = 0; i < 60 && (await level.inputValue()) !== "1"; i++) await later(50);
  assert((await level.inputValue()) === "1", `the refused level still stands there: ${await level.inputValue()}`);
  // In a column that the server takes as it comes: a level of 2 here would be refused in its turn, sooner or later.
  const wetness = page.getByLabel("Wetness, row 3");
  await wetness.fill("7");
  await wetness.press("Enter");
  assert((await wetness.inputValue()) === "1", "a value beyond the range is brought to its end");
  await until(page, (v) => v.tables().burn_stages[2][4] === 1, null, "the server has the value at the end of the range");
  await page.getByRole("button", { name: "Reset to default" }).click();
  await until(page, (v) => v.tables().burn_stages[5][1] === 0x211d1d && v.tables().burn_stages[2][0] === 1, null, "the default is back");
  const { charred } = await page.evaluate(() => window.viscera.measures());
  const told = await page.locator(".measure", { hasText: "Charred area" }).locator("output").innerText();
  assert(charred > 5 && Math.abs(Number(told) - charred) < 0.1, `the panel says ${told}, the frame ${charred}`);
  return { spot: await onScreen(page, SPOT) };
}

/** Keys and toolbar choose; the left button is the pedal of an instrument that has one. */
async function instruments(page) {
  await make("clean");
  const spot = await onScreen(page, SPOT);
  await page.mouse.move(spot.x, spot.y);
  await until(page, (v) => v.tools()[0].active, null, "the probe is first in the hand");
  await page.keyboard.press("2");
  await until(page, (v) => v.tool() === 1 && v.tools()[1].active && !v.tools()[0].active, null, "key 2 takes the hook, the probe withdraws");
  await page.locator("#tools button[aria-pressed=true]", { hasText: "Monopolar hook" }).waitFor();
  await page.mouse.down();
  await until(page, (v) => v.tools()[1].grip === 1, null, "the left button is the pedal");
  await page.locator(".action-label", { hasText: "coagulate" }).waitFor();
  for (let i = 0; i < 200 && (await painted(page, "burn", 1)) < 60; i++) await later(50);
  const burnt = await painted(page, "burn", 1);
  assert(burnt >= 60, `tissue coagulates under the hook: ${burnt} of 255`);
  await page.screenshot({ path: join(folder, "skin-hook.png") });
  await page.mouse.up();
  await until(page, (v) => v.tools()[1].grip === 0, null, "letting go lifts the pedal");
  await page.locator(".action-label").waitFor({ state: "hidden" });
  await page.locator("#view").focus();
  await page.keyboard.down("f");
  await until(page, (v) => v.tools()[1].grip === 1, null, "F is the pedal too");
  await page.keyboard.up("f");
  await page.locator("#tools button", { hasText: "Probe" }).click();
  await page.mouse.move(spot.x, spot.y);
  await until(page, (v) => v.tool() === 0 && v.tools()[0].active && !v.tools()[1].active, null, "the toolbar gives the probe back");
  await page.mouse.down();
  await until(page, (v) => Math.hypot(...v.tools()[0].force) > 0.05, null, "the left button presses with the probe");
  await page.mouse.up();
  await page.mouse.move(...OUTSIDE);
}

/** Digits choose wherever the focus is, except where they are typed; a slider keeps the keys that move it. */
async function keysEverywhere(page) {
  const holds = (tool, why) => until(page, (v, asked) => v.tool() === asked, tool, why);
  await page.getByRole("button", { name: "1×", exact: true }).click();
  await page.keyboard.press("2");
  await holds(1, "after a click on a button, key 2 takes the hook");
  const slider = page.locator("input[type=range]").first();
  await slider.focus();
  await page.keyboard.press("3");
  await holds(2, "with a slider in focus, key 3 takes the forceps");
  const before = Number(await slider.inputValue());
  await slider.press("ArrowRight");
  assert(Number(await slider.inputValue()) > before, "the arrow moves the slider");
  await page.locator("#seed").focus();
  await page.keyboard.press("1");
  await later(200);
  await holds(2, "what is typed into a field chooses nothing");
  await page.locator("#seed").fill("-7");
  await page.keyboard.press("Enter");
  assert((await page.locator("#seed").inputValue()) === "0", "a seed beyond the range is brought to its end");
}

const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { paintings, table, instruments, keysEverywhere });
await close();
