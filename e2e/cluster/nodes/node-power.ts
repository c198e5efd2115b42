import { must } from '../kubectl.ts';

/** Actions on a node: power off and on, network cut and healed. */
type Act = 'kill' | 'start' | 'cut' | 'heal';

/**
 * Runs an action on a node with the command in NODE_POWER, which takes the action and the number of the node, as in
 * NODE_POWER="cluster node".
 * @throws Error without NODE_POWER, or when the command fails
 */
export async function power(act: Act, node: string): Promise<void> {
  const [program = '', ...args] = (process.env['NODE_POWER'] ?? '').split(' ');
  if (program === '')
    throw new Error('NODE_POWER names no command that kills, starts, cuts and heals a node');
  const number = /\d+$/.exec(node)?.[0];
  if (number === undefined) throw new Error(`the name ${node} ends with no number`);
  await must(program, [...args, act, number], { timeoutMs: 120_000 });
}
