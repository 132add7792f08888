// The pictures of docs/cutting.md, by mouse and keys:
//
//     viscera run incision --port 8000 --detail 1 --no-open &
//     node docs/images/cutting.mjs incision http://127.0.0.1:8000/ docs/images
//
// and the same for artery and pattern.

import { join } from "node:path";
import { later, openBrowser, openPage } from "../../tests/browser/browser.mjs";

const [scenario, address, folder] = process.argv.slice(2);
const { context, close } = await openBrowser({ width: 1280, height: 800 });
const { page, errors } = await openPage(context, address);

/** Simulated seconds, however slow the machine is. */
async function simulated(seconds) {
  const time = () => page.evaluate(() => window.viscera.frame.time);
  for (const end = (await time()) + seconds; (await time()) < end;) await later(30);
}

async function point(x, y, z) {
  const at = await page.evaluate(([a, b, c]) => window.viscera.project(a, b, c), [x, y, z]);
  await page.mouse.move(at.x, at.y);
}

async function wheel(notches) {
  for (let i = 0; i < Math.abs(notches); i++) {
    await page.mouse.wheel(0, 100 * Math.sign(notches));
    await simulated(0.05);
  }
}

async function shoot(name) {
  await page.screenshot({ path: join(folder, `${name}.png`), clip: { x: 282, y: 62, width: 685, height: 595 } });
  console.log(name, JSON.stringify(await page.evaluate(() => window.viscera.measures())));
}

/** Draws the tool from one place to another, with its button down. */
async function draw(from, to, seconds, half = async () => {}) {
  await page.mouse.down();
  const steps = 40;
  for (let k = 0; k <= steps; k++) {
    await point(...from.map((a, i) => a + (to[i] - a) * k / steps));
    await simulated(seconds / steps);
    if (k === steps / 2) await half();
  }
  await page.mouse.up();
}

async function incision() {
  const from = [-0.0195, 0.0008, 0.01], to = [0.0195, -0.0012, 0.01];
  await point(...from);
  await simulated(0.5);
  await wheel(-6);
  await draw(from, to, 2.5, () => shoot("cutting-during"));
  await page.mouse.move(120, 640);
  await simulated(0.5);
  await shoot("cutting-incision");
  await simulated(10);
  await shoot("cutting-bleeding");
}

async function artery() {
  await page.keyboard.press("3");
  await point(-0.011, 0, 0.022);
  await simulated(0.8);
  await page.mouse.down();
  await simulated(0.6);
  await page.mouse.up();
  await page.keyboard.press("5");
  await point(0.012, 0, 0.022);
  await simulated(0.8);
  await wheel(-1);
  await simulated(0.4);
  await page.mouse.down();
  await simulated(1.0);
  await wheel(4);
  await simulated(0.8);
  await shoot("cutting-pull");
  await page.keyboard.press("1");
  await page.mouse.up();
  await point(0, -0.012, 0.022);
  await simulated(0.8);
  await wheel(-7);
  await draw([0, -0.012, 0.022], [0, 0.012, 0.022], 2.0);
  await page.mouse.move(300, 120);
  await simulated(1.0);
  await shoot("cutting-artery");
}

async function pattern() {
  await page.keyboard.press("2");
  await point(0, 0, 0.022);
  await simulated(0.6);
  await wheel(-1);
  await simulated(0.3);
  await page.mouse.down();
  await simulated(0.8);
  await wheel(3);
  await simulated(0.5);
  await page.keyboard.press("1");
  await page.mouse.up();
  for (let k = 0; k < 6; k++) {
    const angle = -Math.PI / 2 + 0.28 * k;
    await point(0.0185 * Math.cos(angle), 0.0185 * Math.sin(angle), 0.0225);
    await simulated(0.5);
    await wheel(-2);
    await simulated(0.2);
    await page.mouse.down();
    await simulated(0.3);
    await page.mouse.up();
    await simulated(0.2);
    await wheel(2);
    await page.keyboard.down("q");
    await simulated(0.15);
    await page.keyboard.up("q");
  }
  await page.mouse.move(1100, 640);
  await simulated(0.6);
  await shoot("cutting-pattern");
}

await later(1500);
await { incision, artery, pattern }[scenario]();
console.log("errors", errors);
await close();
