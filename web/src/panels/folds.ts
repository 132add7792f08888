// Which sections a user has opened or closed, kept by the browser.

export class Folds {
  private readonly open: Record<string, boolean>;

  constructor(private readonly key: string) {
    this.open = read(key);
  }

  get(section: string, otherwise: boolean): boolean {
    return section in this.open ? this.open[section] : otherwise;
  }

  /** A browser may forbid storage; then it is forgotten, which does no harm. */
  set(section: string, open: boolean): void {
    this.open[section] = open;
    try {
      localStorage.setItem(this.key, JSON.stringify(this.open));
    } catch {
      // As above.
    }
  }
}

function read(key: string): Record<string, boolean> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? "{}");
    if (typeof kept !== "object" || kept === null) return {};
    return Object.fromEntries(Object.entries(kept).filter(([, open]) => typeof open === "boolean"));
  } catch {
    return {};
  }
}
