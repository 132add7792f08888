// The pictures of docs/suturing.md: one stitch in the middle of the slit, by mouse and keys.
//
//     viscera run suture --port 8000 --detail 1 --no-open &
//     node docs/images/suture.mjs http://127.0.0.1:8000/ docs/images

import { join } from "node:path";
import { later, openBrowser, openPage } from "../../tests/browser/browser.mjs";

const [address, folder] = process.argv.slice(2);
const MIDDLE = [0.0007, 0, 0.01]; // of the slit [m]

const { context, close } = await openBrowser({ width: 1280, height: 720 });
const { page, errors } = await openPage(context, address);

/** Simulated seconds, however slow the machine is. */
async function simulated(seconds) {
  const time = () => page.evaluate(() => window.viscera.frame.time);
  for (const end = (await time()) + seconds; (await time()) < end;) await later(30);
}

async function point([x, y, z]) {
  const at = await page.evaluate(([a, b, c]) => window.viscera.project(a, b, c), [x, y, z]);
  await page.mouse.move(at.x, at.y);
}

async function shoot(name) {
  await page.screenshot({ path: join(folder, `${name}.png`) });
  console.log(name, JSON.stringify(await page.evaluate(() => window.viscera.measures())));
}

await later(1500);
await point(MIDDLE);
await simulated(0.8);
await shoot("suture-start");
await page.mouse.down();
await simulated(1.0);
await shoot("suture-bite");
await simulated(0.4);
await page.mouse.up();
await simulated(1.2);
await shoot("suture-drawn");
await page.keyboard.press("2");
await point(MIDDLE);
await simulated(0.3);
await page.mouse.down();
await simulated(1.2);
await shoot("suture-knot");
await page.mouse.up();
await page.mouse.move(100, 600);
await simulated(0.5);
await shoot("suture-tied");
console.log("errors", errors);
await close();
