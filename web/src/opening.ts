// What the page begins with: its elements, and a view to draw in.

import { Compare } from "./compare";
import type { Connection } from "./connection";
import { Banners } from "./panels/banners";
import type { SceneDescription } from "./protocol";
import { View } from "./view";

/** Session numbers begin again with a new server, so what is in the scene is compared too. */
export function sameScene(one: SceneDescription, other: SceneDescription): boolean {
  const shape = ({ session, scene: { scenario, seed, surfaces } }: SceneDescription) =>
    JSON.stringify([session, scenario, seed, surfaces.map((s) => [s.name, s.array, s.vertex_count, s.triangles.length])]);
  return shape(one) === shape(other);
}

export function part(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`index.html has no element #${id}`);
  return element;
}

/** A page that is left gives its line away; one that comes back, as a browser kept it, has another. */
export function followPage(line: Pick<Connection, "leave" | "start">, leaving: () => void): void {
  window.addEventListener("pagehide", () => {
    leaving();
    line.leave();
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) line.start();
  });
}

export function openView(): View | null {
  if (new URLSearchParams(location.search).has("beside")) {
    new Compare(document.body, location.href);
    return null;
  }
  // Beside another one, a page has room for the picture, its force and its measures.
  document.body.classList.toggle("compared", new URLSearchParams(location.search).has("compared"));
  const canvas = part("view") as HTMLCanvasElement;
  const banners = new Banners(part("banners"), { restart: () => undefined, retry: () => undefined, hand: () => undefined });
  try {
    const view = new View(canvas, new URLSearchParams(location.search).get("detail"));
    canvas.addEventListener("webglcontextlost", () =>
      banners.setDrawing("The graphics driver stopped.", "Reload to start drawing again; the session goes on."));
    return view;
  } catch {
    banners.setDrawing("This browser cannot draw in 3D.", "viscera needs WebGL 2. Use a current browser, and switch hardware acceleration on.");
    return null;
  }
}
