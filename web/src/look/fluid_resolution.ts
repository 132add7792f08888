// How finely a liquid is drawn: as finely as the machine can keep up with, like `resolution.ts` for the whole picture.

const SHARES = [1, 0.7, 0.5, 0.35, 0.25]; // texels of the liquid per pixel of the picture, along each side
const START = 2;
const TOO_SLOW = 40; // [ms] between pictures; more patient than the picture itself, which gives way first
const FAST = 18; // [ms]
const PATIENCE = 10; // slow pictures in a row before a change
const CONFIDENCE = 200; // fast ones before trying more
const MOST_TRIES = 2;

export class FluidResolution {
  private level: number;
  private slow = 0;
  private fast = 0;
  private tries = 0;

  /** `fixed` never changes, so that two pictures can be compared. */
  constructor(software: boolean, private readonly fixed: boolean) {
    this.level = software ? START + 1 : START;
  }

  share(): number {
    return SHARES[this.level];
  }

  /** `interval` between two pictures that were both drawn [ms]; true when the resolution changed. */
  note(interval: number): boolean {
    if (this.fixed) return false;
    this.slow = interval > TOO_SLOW ? this.slow + 1 : 0;
    this.fast = interval < FAST ? this.fast + 1 : 0;
    if (this.slow >= PATIENCE && this.level < SHARES.length - 1) return this.change(1);
    // After some vain attempts it stays: a liquid that keeps changing is worse than a coarse one.
    if (this.fast >= CONFIDENCE && this.level > 0 && this.tries < MOST_TRIES) {
      this.tries += 1;
      return this.change(-1);
    }
    return false;
  }

  private change(by: number): boolean {
    this.level += by;
    this.slow = this.fast = 0;
    return true;
  }
}
