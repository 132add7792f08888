/** How often something happened in the last second. */
export class Rate {
  private readonly times: number[] = [];

  note(now: number): void {
    this.times.push(now);
    this.drop(now);
  }

  perSecond(now: number): number {
    this.drop(now);
    return this.times.length;
  }

  private drop(now: number): void {
    while (this.times.length > 0 && this.times[0] <= now - 1000) this.times.shift();
  }
}
