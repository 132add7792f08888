// The page with burns and blood on the stand-in server's tissue, as docs/page.md shows it.
//
//     python tests/browser/fake_server.py --port 8000 &
//     node docs/images/page-skin.mjs http://127.0.0.1:8000/ docs/images

import { join } from "node:path";
import { later, openBrowser, openPage, until } from "../../tests/browser/browser.mjs";

const [address, folder] = process.argv.slice(2);
const { context, close } = await openBrowser();
await fetch(new URL("/fake/paint", address), { method: "POST" });
const { page } = await openPage(context, `${address}?detail=full`);
await page.mouse.move(640, 330);
await page.keyboard.press("2");
await page.mouse.down({ button: "right" });
await page.mouse.move(630, 365, { steps: 4 });
await page.mouse.up({ button: "right" });
await page.keyboard.down("Shift");
await page.mouse.wheel(0, -250);
await page.keyboard.up("Shift");
await later(3000);
const spot = await page.evaluate(() => window.viscera.project(-0.004, 0.004, 0.0325));
await page.mouse.move(spot.x, spot.y);
await page.mouse.down();
await until(page, (v) => v.tools()[1].grip === 1, null, "the hook works");
await later(2500);
await page.screenshot({ path: join(folder, "page-skin.png") });
await close();
