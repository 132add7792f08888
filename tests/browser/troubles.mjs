// The page against the stand-in server, which can be made to fail: lost lines, other protocols, slow starts, small
// screens, fingers, haptic devices that are late or away.
//
//     node tests/browser/troubles.mjs ADDRESS FOLDER

import { join } from "node:path";
import { assert, later, openBrowser, runChecks, until } from "./browser.mjs";

const [address, folder] = process.argv.slice(2);
const make = (name) => fetch(new URL(`/fake/${name}`, address), { method: "POST" });
const banner = (page, text) => page.locator(".banner", { hasText: text });

async function lostLine(page) {
  const client = await page.evaluate(() => window.viscera.client);
  const orbitBefore = await page.evaluate(() => window.viscera.project(0.04, 0.04, 0.032));
  await make("refuse");
  await make("drop");
  await banner(page, "Connection lost.").waitFor();
  await page.screenshot({ path: join(folder, "lost.png") });
  await later(1200);
  await make("accept");
  await until(page, (v, old) => v.client !== old && document.body.dataset.line === "open", client, "the line comes back by itself");
  await banner(page, "Connection lost.").waitFor({ state: "hidden" });
  const tick = await page.evaluate(() => window.viscera.frame.tick);
  await until(page, (v, old) => v.frame.tick > old, tick, "frames flow again");
  const orbitAfter = await page.evaluate(() => window.viscera.project(0.04, 0.04, 0.032));
  assert(Math.hypot(orbitBefore.x - orbitAfter.x, orbitBefore.y - orbitAfter.y) < 1, "the view stays as it was");
  const middle = await page.evaluate(() => window.viscera.project(0, 0, 0.032));
  await page.mouse.move(middle.x, middle.y);
  await until(page, (v) => v.tools()[0].active, null, "the hand works on the new line");
  await page.mouse.move(1120, 90);
}

async function crash(page) {
  // A session that does not answer may come back by itself.
  await make("stall");
  await banner(page, "has not answered for 3 s").waitFor();
  await page.getByText("no answer", { exact: true }).waitFor();
  if (process.env.VISCERA_SHOTS) await page.screenshot({ path: `${process.env.VISCERA_SHOTS}/stalled.png` });
  await make("running");
  await banner(page, "has not answered for 3 s").waitFor({ state: "hidden" });
  await make("crash");
  await banner(page, "signal 9").waitFor();
  const session = await page.evaluate(() => window.viscera.frame.session);
  await page.getByRole("button", { name: "Restart" }).click();
  await until(page, (v, old) => v.frame.session > old, session, "Restart brings a new session");
  await banner(page, "signal 9").waitFor({ state: "hidden" });
}

async function problem(page) {
  await make("problem");
  await banner(page, "stiffness is 900 kPa").waitFor();
  await page.getByRole("button", { name: "Dismiss" }).click();
  await banner(page, "stiffness is 900 kPa").waitFor({ state: "hidden" });
}

async function starting(page) {
  await make("starting");
  const overlay = page.getByText("Compiling the spring kernels (3 of 7)");
  await overlay.waitFor();
  const value = await page.locator("progress").evaluate((element) => element.value);
  assert(Math.abs(value - 0.43) < 1e-6, `the bar stands at ${value}`);
  await make("running");
  await overlay.waitFor({ state: "hidden" });
}

/** The first visit explains itself until the first movement over the picture. */
async function firstHint(page) {
  const hint = page.getByText("Move over the tissue.");
  await hint.waitFor();
  const middle = await page.evaluate(() => window.viscera.project(0, 0, 0.032));
  await page.mouse.move(middle.x, middle.y);
  await hint.waitFor({ state: "hidden" });
  await page.mouse.move(1120, 90);
}
firstHint.options = { hint: true };

/** Right button and modifiers turn the view and leave the tool alone. */
async function orbit(page) {
  const corner = () => page.evaluate(() => window.viscera.project(0.04, 0.04, 0.032));
  const drag = async (options) => {
    const before = await corner();
    await page.mouse.move(600, 350);
    await page.mouse.down(options);
    await page.mouse.move(680, 380, { steps: 4 });
    await page.mouse.up(options);
    await later(900);
    const after = await corner();
    return Math.hypot(after.x - before.x, after.y - before.y);
  };
  const right = await drag({ button: "right" });
  await page.keyboard.down("Shift");
  const shift = await drag({ button: "left" });
  await page.keyboard.up("Shift");
  const pressed = await page.evaluate(() => Math.hypot(...window.viscera.tools()[0].force));
  assert(right > 20 && shift > 20, `dragging turned the picture by ${right} and ${shift} pixels`);
  assert(pressed < 0.05, "orbiting does not press");
  await page.locator("#view").focus();
  await page.keyboard.press("Home");
  await page.mouse.move(1120, 90);
}

/** What lies where, in a given window; nothing may stick out or lie over something else. */
async function layout(page) {
  return page.evaluate(() => {
    const visible = [...document.querySelectorAll("#header > *, #guide .card, #side .card, #tools, #transport")].filter((element) => element.getClientRects().length > 0);
    const boxes = visible.map((element) => {
      const { left, top, right, bottom } = element.getBoundingClientRect();
      return { name: element.id || element.className || element.tagName, left, top, right, bottom };
    });
    const side = document.getElementById("side");
    return {
      window: [window.innerWidth, window.innerHeight],
      overflow: [document.documentElement.scrollWidth, document.documentElement.scrollHeight],
      sideScrolls: side.scrollHeight > side.clientHeight + 1,
      boxes,
    };
  });
}

async function laptop(page) {
  return layout(page);
}

async function small(page) {
  await page.setViewportSize({ width: 1024, height: 700 });
  await later(500);
  return layout(page);
}

async function tablet(page) {
  await page.setViewportSize({ width: 820, height: 1180 });
  await later(500);
  const figures = await layout(page);
  await page.screenshot({ path: join(folder, "tablet.png") });
  return figures;
}

/** One finger presses, two turn the view. */
async function fingers(page) {
  const line = await page.context().newCDPSession(page);
  await line.send("Emulation.setTouchEmulationEnabled", { enabled: true });
  const touch = (type, points) =>
    line.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  const middle = await page.evaluate(() => window.viscera.project(0, 0, 0.032));
  await touch("touchStart", [[middle.x, middle.y]]);
  await until(page, (v) => Math.hypot(...v.tools()[0].force) > 0.05, null, "one finger presses");
  await touch("touchEnd", []);
  await until(page, (v) => !v.tools()[0].active, null, "lifting it withdraws");
  const corner = () => page.evaluate(() => window.viscera.project(0.04, 0.04, 0.032));
  const before = await corner();
  await touch("touchStart", [[middle.x - 60, middle.y]]);
  await touch("touchStart", [[middle.x - 60, middle.y], [middle.x + 60, middle.y]]);
  for (let i = 1; i <= 5; i++) await touch("touchMove", [[middle.x - 60 + 12 * i, middle.y], [middle.x + 60 + 12 * i, middle.y]]);
  await touch("touchEnd", []);
  await later(900);
  const after = await corner();
  const turned = Math.hypot(after.x - before.x, after.y - before.y);
  assert(turned > 15, `two fingers turned the picture by ${turned} pixels`);
  assert(await page.evaluate(() => Math.hypot(...window.viscera.tools()[0].force) < 0.01), "two fingers do not press");
}

/** The page with devices in these modes: a picture, and what stands in the panel. */
async function withHands(page, name, modes) {
  await make(name);
  await until(page, (_, all) => [...document.querySelectorAll(".device")].map((row) => row.dataset.mode).join() === all,
    modes, `devices are listed as ${modes}`);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  return page.evaluate(() => ({
    rows: [...document.querySelectorAll(".device")].map((row) =>
      [...row.querySelectorAll(".name, .felt, .why")].map((part) => part.innerText).join("; ")),
    strongest: document.querySelector(".figure").innerText,
    figureColour: window.getComputedStyle(document.querySelector(".figure")).color,
    colour: document.body.style.getPropertyValue("--force-colour"),
  }));
}

/** Two haptic devices press, one of them late; then that one is away. */
async function hands(page) {
  const both = await withHands(page, "two_hands", "running,late");
  const arrows = await page.evaluate(() => {
    const scale = 0.001 * Number(/arrow (\d+) mm/.exec(document.getElementById("side").innerText)[1]); // [m/N]
    return window.viscera.tools().slice(0, 2).map(({ position, force }) =>
      [0.2, 0.5].map((share) => window.viscera.project(...position.map((p, i) => p + share * scale * force[i]))));
  });
  const one = await withHands(page, "one_hand", "running,absent");
  await make("no_hands");
  const sound = page.locator("button.listen");
  const sounds = [await sound.getAttribute("aria-checked")];
  for (let i = 0; i < 2; i++) {
    await sound.click();
    sounds.push(await sound.getAttribute("aria-checked"));
  }
  return { both, one, arrows, sounds };
}

/** Last: this server will not be ours again. */
async function otherProtocol(page) {
  await banner(page, "out of date").waitFor();
  await later(1500);
  assert((await page.evaluate(() => document.body.dataset.line)) === "refused", "it does not try again");
  assert(await page.getByRole("button", { name: "Reload" }).isVisible(), "it offers to reload");
}
otherProtocol.options = { wait: false, before: () => make("protocol") };

const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, {
  firstHint, lostLine, crash, problem, starting, orbit, laptop, small, tablet, fingers, hands, otherProtocol,
});
await close();
