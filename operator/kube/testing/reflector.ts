import { systemTiming } from '#kit/clock/timing.ts';
import { type ManualTiming, manualTiming } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { HttpApi } from '../http.ts';
import { Reflector, type ReflectorOptions } from '../reflector.ts';
import { Store } from '../store.ts';
import { type ApiServer, type OpenWatch, startApiServer } from './api-server.ts';
import {
  advanceUntil,
  at,
  credentialsFor,
  make,
  put,
  type TestMetrics,
  testMetrics,
  widgets,
} from './fixtures.ts';

export interface ReflectorHarness {
  readonly server: ApiServer;
  readonly timing: ManualTiming;
  readonly store: Store;
  readonly counted: TestMetrics;
  readonly reflector: Reflector;
  close(): Promise<void>;
}

/** A reflector on manual time with a real socket. */
export async function openReflector(options: Partial<ReflectorOptions> = {}): Promise<ReflectorHarness> {
  const server = await startApiServer();
  const timing = manualTiming();
  const counted = testMetrics();
  const rate = { perSecond: 1_000, burst: 10_000 };
  const credentials = credentialsFor(server.url);
  const api = new HttpApi({ credentials, timing: systemTiming(), metrics: counted.metrics, rate });
  const store = new Store({}, () => undefined);
  const { log } = testRuntime('kube');
  const { metrics } = counted;
  const reflector = new Reflector({ api, store, timing, metrics, log, resource: widgets, ...options });
  const close = async () => {
    await reflector.stop();
    await api.close();
    await server.close();
  };
  return { server, timing, store, counted, reflector, close };
}

export const lists = ({ server }: ReflectorHarness) =>
  server.requests.filter((each) => !each.isWatch && each.method === 'GET');
export const opened = ({ server }: ReflectorHarness) => server.requests.filter((each) => each.isWatch);

/** Whether the store has exactly the versions of the cluster. */
export function isEqual({ server, store }: ReflectorHarness): boolean {
  const versions = (objects: readonly { metadata: { name: string; resourceVersion?: string } }[]) =>
    objects
      .map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)
      .sort()
      .join();
  return versions(store.list()) === versions(server.state.list(at(widgets)));
}

/** The open watch that feeds the store; undefined when there is none. */
export function watching({ server, reflector }: ReflectorHarness): OpenWatch | undefined {
  return reflector.isConnected ? [...server.watches].at(-1) : undefined;
}

/** Starts the reflector and waits for its first watch. */
export async function start(harness: ReflectorHarness): Promise<OpenWatch> {
  harness.reflector.start();
  await advanceUntil(harness.timing, 'a first watch', () => watching(harness) !== undefined);
  const watch = watching(harness);
  if (watch === undefined) throw new Error('no watch');
  return watch;
}

export function edit({ server }: ReflectorHarness, name: string, value: number): void {
  put(server.state, widgets, make(widgets, name, { spec: { value } }));
}
