// The page against a real server: what it draws, what the hand does, what the keys do.
//
//     node tests/browser/live.mjs ADDRESS FOLDER
//
// Pictures go into FOLDER, figures to stdout; `tests/browser/test_browser.py` judges both.

import { join } from "node:path";
import { assert, decode, later, openBrowser, runChecks, until } from "./browser.mjs";

const [address, folder] = process.argv.slice(2);
const OUTSIDE = [1120, 90]; // over the force panel
const SPOT = [0.012, -0.008, 0.032]; // on the block, off its middle [m]
const FIELD = { x: 300, y: 70, width: 660, height: 560 }; // what panels leave free at 1280 × 720

const api = (path) => new URL(path, address);
const health = async () => (await fetch(api("/api/health"))).json();

async function snapshot() {
  const answer = await fetch(api("/api/snapshot"));
  return decode(new Uint8Array(await answer.arrayBuffer()));
}

const spotOnScreen = (page, spot = SPOT) => page.evaluate(([x, y, z]) => window.viscera.project(x, y, z), spot);

/** The tool is where its hand wants it, or as near as tissue lets it; and the tissue has come to rest. */
async function settled(page) {
  const place = () => page.evaluate(() => window.viscera.tools()[0].position);
  let before = await place();
  for (let round = 0; round < 100; round++) {
    await later(250);
    const now = await place();
    if (Math.hypot(...now.map((p, i) => p - before[i])) < 2e-5) break;
    assert(round < 99, "the tool comes to rest");
    before = now;
  }
  await later(700);
}

async function withdrawn(page) {
  await page.mouse.move(...OUTSIDE);
  await until(page, (v) => !v.tools()[0].active, null, "the tool withdraws when the cursor leaves");
}

/** No probe, a hovering probe, a pressing probe, no probe again: four pictures of the tissue alone. */
async function dent(page) {
  await withdrawn(page);
  await page.evaluate(() => window.viscera.showInstruments(false));
  const rest = await page.evaluate(() => [...window.viscera.vertices("tissue")]);
  const shoot = (name) => page.screenshot({ path: join(folder, `${name}.png`), clip: FIELD });
  await later(800);
  await shoot("before");
  await later(500);
  await shoot("untouched");

  const spot = await spotOnScreen(page);
  await page.mouse.move(spot.x, spot.y);
  await until(page, (v) => v.tools()[0].active, null, "the tool comes in when the cursor does");
  await settled(page);
  await shoot("hovering");
  const hoverForce = await page.evaluate(() => Math.hypot(...window.viscera.tools()[0].force));

  await page.mouse.down();
  await page.mouse.wheel(0, -600); // six notches: six millimetres deeper
  await until(page, (v) => Math.hypot(...v.tools()[0].force) > 0.05, null, "pressing is felt");
  await settled(page);
  await shoot("pressed");
  const pressed = await page.evaluate(() => {
    const { tip, tools, instruments, vertices, project } = window.viscera;
    const [x, y, z] = tools()[0].position;
    return { tip: tip(), radius: instruments()[0].radius, position: [x, y, z], force: tools()[0].force, pixel: project(x, y, z), vertices: [...vertices("tissue")] };
  });

  const compared = await samePlaceAsServer(page);
  await page.evaluate(() => window.viscera.showInstruments(true));
  await later(300);
  await page.screenshot({ path: join(folder, "page.png") });
  await page.keyboard.press("p"); // goes on
  await page.mouse.up();
  await withdrawn(page);
  await page.evaluate(() => window.viscera.showInstruments(false));
  await later(2500);
  await shoot("after");
  return { field: FIELD, rest, hoverForce, pressed, compared, latency: await page.evaluate(() => window.viscera.latency()) };
}

/** Pauses with the dent in place; the page must draw the very state that the server holds. */
async function samePlaceAsServer(page) {
  await page.keyboard.press("p");
  await until(page, () => document.body.dataset.session === "paused", null, "P pauses");
  await later(300);
  const exact = await snapshot();
  await until(page, (v, tick) => v.frame.tick === tick, exact.state.tick, `the page shows the paused tick ${exact.state.tick}`);
  const array = exact.arrays.find((candidate) => candidate.name === "tissue");
  const truth = new Float32Array(array.data.slice().buffer);
  const drawn = await page.evaluate(() => [...window.viscera.vertices("tissue")]);
  assert(drawn.length === truth.length, `${drawn.length / 3} vertices drawn, ${truth.length / 3} in the snapshot`);
  const axes = [0, 1, 2].map((axis) => {
    let low = Infinity, high = -Infinity, error = 0;
    for (let i = axis; i < truth.length; i += 3) {
      low = Math.min(low, truth[i]);
      high = Math.max(high, truth[i]);
      error = Math.max(error, Math.abs(truth[i] - drawn[i]));
    }
    return { extent: high - low, error };
  });
  return { tick: exact.state.tick, vertices: truth.length / 3, axes };
}

/** Without a mouse: Tab to the picture, arrows, space, pause, step, reset. */
async function keyboard(page) {
  await withdrawn(page);
  for (let i = 0; i < 3 && !(await page.evaluate(() => document.activeElement.id === "view")); i++) await page.keyboard.press("Tab");
  assert(await page.evaluate(() => document.activeElement.id === "view"), "Tab reaches the picture");
  await page.keyboard.down("ArrowRight");
  await until(page, (v) => v.tools()[0].active, null, "an arrow key brings the tool in");
  const first = await page.evaluate(() => window.viscera.tip());
  await until(page, (v, x) => v.tip()[0] > x + 0.004, first[0], "the right arrow moves the tip to the right");
  await page.keyboard.up("ArrowRight");
  await page.keyboard.down("Space");
  await until(page, (v) => Math.hypot(...v.tools()[0].force) > 0.02, null, "space presses");
  await page.keyboard.up("Space");
  await until(page, (v) => Math.hypot(...v.tools()[0].force) < 0.01, null, "letting go lifts");
  await page.keyboard.press("p");
  await until(page, () => document.body.dataset.session === "paused", null, "P pauses");
  await later(400);
  const before = (await health()).tick;
  await page.keyboard.press(".");
  await until(page, (v, tick) => v.frame.tick === tick, before + 16, "a period advances one frame");
  await page.keyboard.press("p");
  await until(page, () => document.body.dataset.session === "running", null, "P resumes");
  await page.keyboard.press("?");
  assert(await page.locator("dialog.help").isVisible(), "a question mark opens the help");
  await page.keyboard.press("Escape");
  assert(!(await page.locator("dialog.help").isVisible()), "Escape closes it");
  await page.locator("#view").focus();
  await page.keyboard.press("Escape");
  await until(page, (v) => !v.tools()[0].active, null, "Escape withdraws the tool");
  return { step: 16 };
}

/** Type a value, then back to the default; the simulation has both. */
async function parameter(page) {
  const field = page.getByLabel("Stiffness in kPa");
  const begin = await page.evaluate(() => window.viscera.parameters().stiffness);
  const most = Number(await field.getAttribute("max"));
  const typed = Math.round(100 * (0.7 * most + 0.3 * begin)) / 100;
  await field.fill(String(typed));
  await field.press("Enter");
  await until(page, (v, value) => Math.abs(v.parameters().stiffness - value) < 1e-4, typed, `the simulation takes ${typed}`);
  await page.getByLabel(/^Stiffness: back to/).click();
  await until(page, (v, value) => Math.abs(v.parameters().stiffness - value) < 1e-4, begin, "and the default again");
  const slider = page.locator("#parameter-stiffness");
  await slider.focus();
  await page.keyboard.press("End");
  await until(page, (v, value) => Math.abs(v.parameters().stiffness - value) < 1e-4, most, "the slider's End key gives the maximum");
  await field.fill("999");
  await field.press("Enter");
  assert(Number(await field.inputValue()) === most, "a value beyond the range is brought to its end");
  await page.getByLabel(/^Stiffness: back to/).click();
  return { begin };
}

async function slowMotion(page) {
  await page.getByTitle("Speed 0.25 times real time").click();
  await page.locator("#transport button[aria-pressed=true]", { hasText: "0.25×" }).waitFor();
  await later(1200);
  const begin = await page.evaluate(() => [window.viscera.frame.time, performance.now()]);
  await later(1500);
  const end = await page.evaluate(() => [window.viscera.frame.time, performance.now()]);
  await page.getByTitle("Speed 1 times real time").click();
  await page.locator("#transport button[aria-pressed=true]", { hasText: /^1×$/ }).waitFor();
  return { factor: ((end[0] - begin[0]) * 1000) / (end[1] - begin[1]) };
}

/** The session process is killed: the page says so, and its button brings the session back. */
async function killed(page) {
  const { session_pid: process_id, session } = await health();
  process.kill(process_id, "SIGKILL");
  const banner = page.locator(".banner.error", { hasText: "The session stopped." });
  await banner.waitFor();
  const text = await banner.innerText();
  await banner.getByRole("button", { name: "Restart" }).click();
  await until(page, (v, old) => v.frame.session > old && document.body.dataset.session === "running", session, "the session resumes");
  assert(!(await banner.isVisible()), "the banner goes away");
  return { text };
}

const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { dent, keyboard, parameter, slowMotion, killed });
await close();
