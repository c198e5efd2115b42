import { parseArgs } from 'node:util';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { operatorError } from '../errors.ts';
import { noObjects, type Objects, readObjects } from './objects.ts';
import { planObjects } from './plan-objects.ts';
import { planText, statusText } from './report.ts';

/** Input and output of the program. */
export interface Surface {
  /** Text of a file; `-` is standard input. Throws AppError not_found FILE_UNREADABLE. */
  readFile(path: string): Promise<string>;
  /** Objects of the cluster as kubectl prints them in JSON. Throws AppError unavailable KUBECTL_FAILED. */
  kubectl(args: readonly string[]): Promise<string>;
  print(text: string): void;
  complain(text: string): void;
  nowMs(): number;
}

const USAGE = `kubectl chancery plan -f FILE [--live FILE | --cluster] [-n NAMESPACE]
kubectl chancery status [-f FILE] [-n NAMESPACE | -A]

plan    shows what applying FILE would do: the steps in order, their disruption, and the arithmetic of quorums. It calls no
        service. Without an option the current state is empty; --live reads it from a file (kubectl get chancery -o
        json), --cluster from the cluster of kubectl. FILE - is standard input.
status  shows the state of tenants, validator sets and registers, from the cluster or from a file.

Exit codes: 0 success; 1 an object cannot reach the desired state (plan) or is not ready (status); 2 wrong command or
file.
`;

const options = {
  file: { type: 'string', short: 'f' },
  live: { type: 'string' },
  cluster: { type: 'boolean', default: false },
  namespace: { type: 'string', short: 'n' },
  'all-namespaces': { type: 'boolean', short: 'A', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

type Values = ReturnType<typeof parse>['values'];

function parse(args: readonly string[]) {
  return parseArgs({ args: [...args], options, allowPositionals: true });
}

/** Runs one command; resolves to the exit code. */
export async function run(args: readonly string[], surface: Surface): Promise<number> {
  try {
    const { values, positionals } = parseOrRefuse(args);
    const [command, ...surplus] = positionals;
    if (values.help || command === undefined) {
      surface.print(USAGE);
      return values.help ? 0 : 2;
    }
    if (surplus.length > 0) throw usage(`${surplus.join(' ')} is unexpected`);
    if (command === 'plan') return await plan(values, surface);
    if (command === 'status') return await status(values, surface);
    throw usage(`${command} is not a command`);
  } catch (error) {
    if (!isAppError(error)) throw error;
    surface.complain(`${error.message}\n`);
    return 2;
  }
}

function usage(problem: string, cause?: unknown): AppError {
  const text = `${problem}; see kubectl chancery --help`;
  return operatorError('INVALID_ARGUMENTS', text, { cause });
}

function parseOrRefuse(args: readonly string[]) {
  try {
    return parse(args);
  } catch (error) {
    throw usage(error instanceof Error ? error.message : 'The arguments cannot be read', error);
  }
}

async function plan(values: Values, surface: Surface): Promise<number> {
  const { file, live, cluster } = values;
  if (file === undefined) throw usage('plan needs -f FILE');
  if (live !== undefined && cluster) throw usage('--live and --cluster exclude each other');
  const namespace = values.namespace ?? 'default';
  const desired = readObjects(await surface.readFile(file), { file, namespace });
  const current = await liveObjects(values, surface);
  const entries = planObjects(desired, current, surface.nowMs());
  if (entries.length === 0) throw usage(`${file} contains no Tenant, ValidatorSet or Register`);
  surface.print(planText(entries));
  return entries.some(({ refused }) => refused !== undefined) ? 1 : 0;
}

async function liveObjects(
  { live, cluster, namespace = 'default' }: Values,
  surface: Surface,
): Promise<Objects> {
  if (live !== undefined) return readObjects(await surface.readFile(live), { file: live, namespace });
  return cluster ? fromCluster(['--all-namespaces'], surface) : noObjects;
}

async function fromCluster(where: readonly string[], surface: Surface): Promise<Objects> {
  const kinds = 'tenants.chancery.dev,validatorsets.chancery.dev,registers.chancery.dev';
  const text = await surface.kubectl(['get', kinds, '--output', 'json', ...where]);
  return readObjects(text, { file: 'kubectl get', namespace: 'default' });
}

async function status(values: Values, surface: Surface): Promise<number> {
  const { file, namespace } = values;
  const own = namespace === undefined ? [] : ['--namespace', namespace];
  const where = values['all-namespaces'] ? ['--all-namespaces'] : own;
  const objects =
    file === undefined
      ? await fromCluster(where, surface)
      : readObjects(await surface.readFile(file), { file, namespace: namespace ?? 'default' });
  surface.print(statusText(objects));
  const all = [...objects.tenants, ...objects.validatorSets, ...objects.registers];
  const isReady = (each: (typeof all)[number]): boolean =>
    each.status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
  return all.every(isReady) ? 0 : 1;
}
