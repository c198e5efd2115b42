/** Figures of the rounds, in pairs of the product and the program beside it. */
export interface Pairs {
  readonly ours: number[];
  readonly raw: number[];
}

/**
 * Measures both by turns: the order changes with each round, so that it favours none.
 * @param warmUp rounds that are not counted
 */
export async function byTurns(
  { rounds, warmUp }: { readonly rounds: number; readonly warmUp: number },
  ours: () => Promise<number>,
  raw: () => Promise<number>,
): Promise<Pairs> {
  const pairs: Pairs = { ours: [], raw: [] };
  for (let n = 0; n < warmUp + rounds; n++) {
    const first = n % 2 === 0 ? await ours() : undefined;
    const bare = await raw();
    const figure = first ?? (await ours());
    if (n < warmUp) continue;
    pairs.ours.push(figure);
    pairs.raw.push(bare);
  }
  return pairs;
}
