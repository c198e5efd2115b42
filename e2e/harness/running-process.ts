import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { exitCodes, STARTED_MESSAGE } from '#kit/lifecycle/lifecycle.ts';
import { freePorts } from '../../components/standalone/state/ports.ts';
import { until } from './wait.ts';

/** Command line and environment of a process. Linux only. */
export interface ProcessStart {
  readonly program: string;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Command line and environment of a running process, without the IPC channel to its parent. */
export function startOf(pid: number | undefined): ProcessStart {
  const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0').filter(Boolean);
  const env = Object.fromEntries(
    read('environ')
      .filter((each) => !each.startsWith('NODE_CHANNEL_'))
      .map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
  );
  const [program = '', ...words] = read('cmdline');
  return { program, words, env };
}

/** A process that a test started itself. */
export interface OwnProcess {
  /** Its output so far. */
  output(): string;
  /** Sends SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>;
}

/** Settings of the ports of a service, and of the gateway. */
export const SERVICE_PORTS = ['CHANCERY_OPS_PORT', 'CHANCERY_HTTPS_PORT', 'CHANCERY_GRPC_PORT'] as const;
export const GATEWAY_PORTS = ['CHANCERY_OPS_PORT', 'CHANCERY_GATEWAY_PORT'] as const;

/** A process that has ports of its own. */
interface PlacedProcess extends OwnProcess {
  /** Settings of its ports, and their values. */
  readonly ports: Readonly<Record<string, string>>;
}

const readyDeadlineMs = 120_000;
const mostPlaces = 10;

/**
 * Starts a component as another process was started, with some settings changed; resolves when it is ready. Its ports are
 * free, or a search for free ports by another test holds them for a moment.
 */
export async function startLike(
  start: ProcessStart,
  changes: Readonly<Record<string, string>>,
): Promise<OwnProcess> {
  return until('free ports of the process', readyDeadlineMs, () => startOnce(start, changes));
}

/**
 * Starts a component like startLike, on a free port for each of the given settings. A port is bound a little after it was
 * found: a component that finds one taken is started again on other ones.
 *
 * @param settingsOf further settings, which may name the ports
 */
export async function startOnFreePorts(
  start: ProcessStart,
  settings: readonly string[],
  settingsOf: (ports: Readonly<Record<string, string>>) => Readonly<Record<string, string>> = () => ({}),
): Promise<PlacedProcess> {
  for (let place = 0; place < mostPlaces; place += 1) {
    const free = await freePorts(settings.length);
    const ports = Object.fromEntries(settings.map((setting, n) => [setting, String(free[n])]));
    const started = await startOnce(start, { ...settingsOf(ports), ...ports });
    if (started !== undefined) return { ...started, ports };
  }
  throw new Error(`other processes took the ports of the process ${mostPlaces} times`);
}

/** Undefined when another process has one of its ports. */
async function startOnce(
  { program, words, env: given }: ProcessStart,
  changes: Readonly<Record<string, string>>,
): Promise<OwnProcess | undefined> {
  const env = { ...given, ...changes };
  const child = spawn(program, words, { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  // after the end of its output, which an error shows
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes: Buffer) => {
      said += bytes.toString();
    });
  }
  const kill = (): Promise<void> => {
    child.kill('SIGKILL');
    return ended;
  };
  try {
    await untilReady(child, env['CHANCERY_OPS_PORT']);
  } catch (cause) {
    await kill();
    if (child.exitCode === exitCodes.addressInUse) return undefined;
    throw new Error(`the process did not become ready:\n${said}`, { cause });
  }
  return { output: () => said, kill };
}

/** Before the process says that it has started, another one may answer at its port. */
async function untilReady(child: ChildProcess, opsPort: string | undefined): Promise<void> {
  let hasStarted = false;
  child.on('message', (message) => {
    hasStarted ||= message === STARTED_MESSAGE;
  });
  await until('the process is ready', readyDeadlineMs, async () => {
    const reason = child.signalCode ?? child.exitCode;
    if (reason !== null) throw new Error(`the process has ended: ${reason}`);
    if (!hasStarted) return undefined;
    const answer = await fetch(`http://127.0.0.1:${opsPort}/ready`).catch(() => undefined);
    return answer?.status === 200 ? true : undefined;
  });
}
