import { must } from './kubectl.ts';

const [program = '', ...args] = (process.env['API_SERVER_POWER'] ?? '').split(' ');

/** Whether API_SERVER_POWER names a command that kills and starts the API server, as in API_SERVER_POWER=.ci/api-server. */
export const hasApiServerPower = program !== '';

/**
 * Kills the process of the API server, or starts it again; `start` does not affect a running one.
 * @throws Error when the command fails
 */
export async function apiServer(act: 'kill' | 'start'): Promise<void> {
  await must(program, [...args, act]);
}
