import { testRuntime } from '#kit/testing/runtime.ts';
import { HttpApi } from '../http.ts';
import { Reflector, type ReflectorOptions } from '../reflector.ts';
import { Store } from '../store.ts';
import { systemTiming } from '../time.ts';
import { type ApiServer, type OpenWatch, startApiServer } from './api-server.ts';
import {
  at,
  credentialsFor,
  make,
  passing,
  put,
  type TestMetrics,
  testMetrics,
  widgets,
} from './fixtures.ts';
import { type ManualTiming, manualTiming } from './manual-timing.ts';

export interface ReflectorBench {
  readonly server: ApiServer;
  readonly timing: ManualTiming;
  readonly store: Store;
  readonly counted: TestMetrics;
  readonly reflector: Reflector;
  close(): Promise<void>;
}

/** A reflector on manual time before a real socket. */
export async function openReflector(options: Partial<ReflectorOptions> = {}): Promise<ReflectorBench> {
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

export const lists = ({ server }: ReflectorBench) =>
  server.arrivals.filter((each) => !each.isWatch && each.method === 'GET');
export const opened = ({ server }: ReflectorBench) => server.arrivals.filter((each) => each.isWatch);

/** The store has exactly the versions that the cluster has. */
export function isEqual({ server, store }: ReflectorBench): boolean {
  const versions = (objects: readonly { metadata: { name: string; resourceVersion?: string } }[]) =>
    objects
      .map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`)
      .sort()
      .join();
  return versions(store.list()) === versions(server.state.list(at(widgets)));
}

/** Whether a watch is open from which the store is fed at this moment. */
export function watching({ server, reflector }: ReflectorBench): OpenWatch | undefined {
  return reflector.isConnected ? [...server.watches].at(-1) : undefined;
}

/** Starts it, and waits for its first watch. */
export async function start(bench: ReflectorBench): Promise<OpenWatch> {
  bench.reflector.start();
  await passing(bench.timing, 'a first watch', () => watching(bench) !== undefined);
  const watch = watching(bench);
  if (watch === undefined) throw new Error('no watch');
  return watch;
}

export function edit({ server }: ReflectorBench, name: string, value: number): void {
  put(server.state, widgets, make(widgets, name, { spec: { value } }));
}
