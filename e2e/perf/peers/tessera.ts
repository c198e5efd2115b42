import { Pool } from 'undici';
import { z } from 'zod';
import { cpuSeconds } from '../process-cpu.ts';
import { freePorts } from './ports.ts';
import { run, serve } from './program.ts';

/** A log of Tessera on POSIX files behind HTTP on loopback. */
export interface Tessera {
  /** Adds an entry; it is integrated when this resolves. */
  send(entry: string): Promise<void>;
  /** Number of integrated entries. */
  stored(): Promise<number>;
  /** Milliseconds from adding an entry until a client of its own has verified a proof, one after the other. */
  prove(count: number, entryBytes: number): Promise<readonly number[]>;
  cpuSeconds(): number;
  stop(): Promise<void>;
}

export interface TesseraOptions {
  readonly program: string;
  readonly dir: string;
  /** Maximum number of entries that are integrated together; default settings when absent. */
  readonly batch?: number;
  readonly connections: number;
}

/** How long the first entry of a batch waits for others, unless the settings are the default ones. */
const ageMillis = 5;

export async function startTessera({ program, dir, batch, connections }: TesseraOptions): Promise<Tessera> {
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const listen = `127.0.0.1:${port}`;
  const log = await serve(program, ['serve', JSON.stringify({ dir, listen, batch, ageMillis })]);
  const pool = new Pool(url, { connections });
  const watch = new Pool(url, { connections: 1 });
  return {
    send: async (body) => {
      for (;;) {
        const answer = await pool.request({ path: '/add', method: 'POST', body });
        const text = await answer.body.text();
        if (answer.statusCode === 200) return;
        if (answer.statusCode !== 429) throw new Error(`Tessera answered ${answer.statusCode}: ${text}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    stored: async () => Number(await (await watch.request({ path: '/size', method: 'GET' })).body.text()),
    prove: async (count, entryBytes) => {
      const settings = JSON.stringify({ url, key: log.said, count, entryBytes });
      return z.array(z.number()).parse(JSON.parse(await run(program, ['prove', settings])));
    },
    cpuSeconds: () => cpuSeconds(log.pid),
    stop: async () => {
      await Promise.all([pool.destroy(), watch.destroy()]);
      await log.stop();
    },
  };
}

/** No client waits for the answer to an entry there. */
const batchWithin = 1_024;

/** Entries per second of a log whose own program adds them. */
export async function fedWithin(
  program: string,
  dir: string,
  count: number,
  entryBytes: number,
): Promise<number> {
  return Number(
    await run(program, ['feed', JSON.stringify({ dir, batch: batchWithin, ageMillis, count, entryBytes })]),
  );
}
