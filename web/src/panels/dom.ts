// Small pieces to build panels from. Text goes in as text, never as markup.

type Child = Node | string | null;
type Listener = (event: Event) => void;

export interface Props {
  class?: string;
  on?: Record<string, Listener>;
  [attribute: string]: string | number | boolean | Record<string, Listener> | undefined;
}

/** `h("button", { class: "primary", on: { click } }, "Start")`. A boolean attribute is there or not. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "object") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Writes only what changed: the browser lays out again for every write. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

const ICONS = {
  pause: "M8 5v14M16 5v14",
  play: "M8 5l11 7-11 7z",
  step: "M6 5l9 7-9 7zM18 5v14",
  reset: "M5 12a7 7 0 1 0 2.2-5.1M7 3v4h4",
  help: "M9.2 9.2a2.9 2.9 0 1 1 4.3 2.6c-1 .6-1.5 1.1-1.5 2.2M12 17.6v.2",
  chevron: "M7 10l5 5 5-5",
  eye: "M3 12s3.5-6 9-6 9 6 9 6-3.5 6-9 6-9-6-9-6zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  chip: "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4",
  close: "M6 6l12 12M18 6L6 18",
  undo: "M9 7L5 11l4 4M5 11h9a5 5 0 0 1 0 10h-3",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 9.700h4M4 14.300h4M16 9.700h4M16 14.300h4",
  grow: "M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5",
  shrink: "M4 9h5V4M20 9h-5V4M4 15h5v5M20 15h-5v5",
  beside: "M3 5h18v14H3zM12 5v14",
  save: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  inset: "M3 5h18v14H3zM12 9h6v5h-6z",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.500a7.500 7.500 0 0 1 15 0",
  note: "M6 4h12v16H6zM9 9h6M9 13h6",
  check: "M4 12.5l5.5 5.5L20 7",
  warn: "M12 4l9 16H3zM12 10v4M12 17v.2",
  heat: "M12 14.5V6a2 2 0 1 0-4 0v8.5a4 4 0 1 0 4 0zM10 17.5V9M15.5 6H19M15.5 10H18M15.5 14H19",
  probe: "M20 4l-9.2 9.2M8 19a3.4 3.4 0 1 0 0-6.8A3.4 3.4 0 0 0 8 19z",
  hook: "M20 3l-8.5 8.5M11.500 11.500L7.500 15.500M7.500 15.500a3 3 0 0 0 0 4.200l.8.8M7.500 15.500l1.600 4.300",
  forceps: "M20 3l-6 6M14 9c-3.500 0-6.500 3.500-9 9.500M14 9c0 3.500-3.500 6.500-9 9.500",
  water: "M20 3l-8.500 8.500M9.500 10.500l4 4M8 21a2.800 2.800 0 0 0 2.800-2.800c0-1.900-2.800-4.700-2.800-4.700s-2.800 2.800-2.800 4.700A2.800 2.800 0 0 0 8 21z",
  suction: "M20 3l-9 9M9 10l5 5M4 20l3.200-3.200M7.400 19.800v-3.200H4.200",
  clip: "M20 3l-8 8M12 11l-6.500 2.500v3.500M12 11l-2.500 6.500H6",
  pin: "M9.500 14.500L4 20M13.500 4.500l6 6M15 6l-4.500 4.500-3.500 1 5.500 5.500 1-3.500L18 9",
  scissors: "M20 4L7.500 16.500M20 20L7.500 7.500M6 9.500a2.600 2.600 0 1 0 0-5.200 2.600 2.600 0 0 0 0 5.200zM6 19.700a2.600 2.600 0 1 0 0-5.200 2.600 2.600 0 0 0 0 5.200z",
  scalpel: "M20 3l-8.500 8.500M12.800 12.300L5 20c-.5-3 1-7.500 6-9.500z",
  needle: "M20 3l-6 6M14 9a7 7 0 0 0-9.900 9.900M4.100 18.900l1-3.200M12 11c3 2 4 5 2 9",
  knot: "M3 17c5 0 6-9 10-9a3 3 0 0 1 0 6c-4 0-5-6-10-6M13 14c3 0 4 3 8 3M13 8c3 0 4-1 8-1",
  tool: "M20 3L9 14M9 14l-4.500 6.500L11 16z",
} as const;

export type IconName = keyof typeof ICONS;

export function icon(name: IconName): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A card that folds, `open` at first; `aside` is seen in its title even when it is folded. */
export function card(title: string, open: boolean, aside: Child, ...children: Child[]): HTMLDetailsElement {
  const body = h("div", { class: "card-body" }, ...children);
  return h("details", { class: "card", open }, h("summary", {}, h("h2", {}, title), aside, icon("chevron")), body);
}
