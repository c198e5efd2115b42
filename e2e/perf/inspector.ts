import { until } from '../harness/wait.ts';

const inspectorUrl = 'http://127.0.0.1:9229';

/** Memory of a process that V8 holds after a full garbage collection, MiB. */
export interface HeapAtRest {
  readonly usedMiB: number;
  /** Buffers outside of the heap. */
  readonly outsideMiB: number;
}

const mebibyte = 1024 * 1024;

/**
 * Makes a Node process collect its garbage and returns the remaining memory. SIGUSR1 opens its inspector on the one
 * port that all processes share, so it is closed again before the next process.
 */
export async function heapAtRest(pid: number): Promise<HeapAtRest> {
  const target = await openInspector(pid);
  try {
    for (let n = 0; n < 3; n++) await target.ask('HeapProfiler.collectGarbage');
    const text = 'JSON.stringify(process.memoryUsage())';
    const { result } = (await target.ask('Runtime.evaluate', { expression: text })) as {
      result: { value: string };
    };
    const { heapUsed, external } = JSON.parse(result.value) as { heapUsed: number; external: number };
    return { usedMiB: heapUsed / mebibyte, outsideMiB: external / mebibyte };
  } finally {
    await target.close();
  }
}

/** A pause of an event loop, and how long its thread ran meanwhile: the rest is the machine's. */
interface Pause {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** Pauses of the event loop of a process. */
interface Pauses {
  reset(): Promise<void>;
  /** The longest since the last reset. */
  longest(): Promise<Pause>;
  close(): Promise<void>;
}

/** Keeps the longest time between two turns of a timer of 1 ms; runs in the measured process. */
const sampler = `globalThis.pauses = (() => {
  let [at, used] = [performance.now(), process.threadCpuUsage()];
  const pauses = { longest: { wallMs: 0, cpuMs: 0 } };
  pauses.timer = setInterval(() => {
    const [now, usage] = [performance.now(), process.threadCpuUsage()];
    const cpuMs = (usage.user + usage.system - used.user - used.system) / 1000;
    if (now - at > pauses.longest.wallMs) pauses.longest = { wallMs: now - at, cpuMs };
    [at, used] = [now, usage];
  }, 1);
  return pauses;
})()`;

/** Watches the event loop of a process. */
export async function openPauses(pid: number): Promise<Pauses> {
  const target = await openInspector(pid);
  const evaluate = async (expression: string): Promise<string> => {
    const { result } = (await target.ask('Runtime.evaluate', { expression })) as {
      result: { value?: unknown };
    };
    return String(result.value);
  };
  await evaluate(sampler);
  return {
    reset: async () => void (await evaluate('pauses.longest = { wallMs: 0, cpuMs: 0 }')),
    longest: async () => JSON.parse(await evaluate('JSON.stringify(pauses.longest)')) as Pause,
    close: async () => {
      await evaluate('clearInterval(pauses.timer); delete globalThis.pauses');
      await target.close();
    },
  };
}

interface Target {
  ask(method: string, params?: object): Promise<unknown>;
  close(): Promise<void>;
}

async function openInspector(pid: number): Promise<Target> {
  await inspectorClosed();
  process.kill(pid, 'SIGUSR1');
  const url = await until('the inspector', 10_000, async () => {
    const answer = await fetch(`${inspectorUrl}/json/list`).catch(() => undefined);
    const [first] = ((await answer?.json()) ?? []) as { webSocketDebuggerUrl: string }[];
    return first?.webSocketDebuggerUrl;
  });
  const socket = new WebSocket(url);
  const waiting = new Map<number, (result: unknown) => void>();
  let next = 0;
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
    if (id === undefined) return;
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', reject, { once: true });
  });
  const ask = (method: string, params: object = {}): Promise<unknown> =>
    new Promise((resolve) => {
      next += 1;
      waiting.set(next, resolve);
      socket.send(JSON.stringify({ id: next, method, params }));
    });
  const close = async (): Promise<void> => {
    const expression = "process.getBuiltinModule('node:inspector').close()";
    void ask('Runtime.evaluate', { expression: `setImmediate(() => ${expression})` });
    await inspectorClosed();
    socket.close();
  };
  return { ask, close };
}

function inspectorClosed(): Promise<boolean> {
  return until('the inspector to be closed', 10_000, async () =>
    fetch(`${inspectorUrl}/json/version`).then(
      () => undefined,
      () => true,
    ),
  );
}
