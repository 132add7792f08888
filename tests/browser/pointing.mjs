// What the cursor points at is where an instrument acts: every instrument of a scenario, in windows of three sizes.
//
//     node tests/browser/pointing.mjs ADDRESS
//
// Figures go to stdout; `tests/browser/test_pointing.py` judges them.

import { assert, openBrowser, runChecks, started, until } from "./browser.mjs";

const [address] = process.argv.slice(2);
const WINDOWS = [[1280, 720], [900, 600], [640, 800]];
const SETTLED = 64; // ticks after which a tool that follows its hand with 12 ms of lag has come to it

/** Distance from the cursor to where the tool in the hand acts, CSS pixels, once it is where the hand wants it. */
async function off(page, tool, cursor) {
  const tick = await page.evaluate(() => window.viscera.frame.tick);
  await until(
    page,
    (v, { number, after }) => {
      const hand = v.tip(), { active, position } = v.tools()[number];
      return active && v.frame.tick >= after && Math.hypot(...position.map((value, axis) => value - hand[axis])) < 2e-5;
    },
    { number: tool, after: tick + SETTLED },
    `instrument ${tool + 1} comes to where the hand wants it`,
  );
  const place = await page.evaluate((number) => window.viscera.project(...window.viscera.actingPoints()[number]), tool);
  return Math.hypot(place.x - cursor.x, place.y - cursor.y);
}

async function pointing(page) {
  const found = [];
  const { instruments, home } = await page.evaluate(() => {
    const vertices = window.viscera.vertices("pad");
    let top = 0;
    for (let i = 2; i < vertices.length; i += 3) if (vertices[i] > vertices[top + 2]) top = i - 2;
    return { instruments: window.viscera.instruments(), home: [...vertices.slice(top, top + 3)] };
  });
  for (const [width, height] of WINDOWS) {
    await page.setViewportSize({ width, height });
    for (const [tool, { name }] of instruments.entries()) {
      // Each beside the one before, so that none works in the burn or dent of another.
      const aside = [home[0] + 0.008 * (tool - 0.5 * instruments.length), 0.5 * home[1], home[2]];
      const cursor = await page.evaluate((at) => window.viscera.project(...at), aside);
      await page.mouse.move(cursor.x, cursor.y);
      await page.keyboard.press(String(tool + 1));
      await until(page, (v, number) => v.tool() === number && v.tools()[number].active, tool, `key ${tool + 1} takes the ${name}`);
      await page.mouse.down();
      await until(page, (v, number) => v.tools()[number].grip === 1, tool, "its pedal or handle goes down");
      found.push({ window: `${width} × ${height}`, name, pixels: await off(page, tool, cursor) });
      await page.mouse.up();
    }
  }
  assert(found.length === WINDOWS.length * instruments.length, "every instrument was tried");
  return { found };
}

await started(address);
const { context, close } = await openBrowser();
await runChecks(context, `${address}?detail=plain`, { pointing });
await close();
