import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createLogger } from '#kit/log/log.ts';
import { startPostgres } from '../../components/standalone/postgres/embedded.ts';
import { treeCpuSeconds } from './process-cpu.ts';

const path = fileURLToPath(new URL('../../components/register/testing/growth/main.ts', import.meta.url));

/** CPU microseconds of one transaction, by process. */
export interface Cost {
  readonly service: number;
  readonly database: number;
}

/** Registers in databases of their own, in one register service and one PostgreSQL as local mode starts them. */
export interface Subjects {
  open(subject: string): Promise<void>;
  /** Generates history up to that size; `onMade` receives the present size. */
  growTo(subject: string, count: number, onMade: (made: number) => void): Promise<void>;
  /** Cost of a transaction when the service verifies and stores these dockets. */
  append(subject: string, dockets: Dockets): Promise<Cost>;
  /** The same when the dockets are spread over new registers. */
  spread(subject: string, registers: number, dockets: Dockets): Promise<Cost>;
  reads(): Promise<readonly string[]>;
  /** Milliseconds of `times` reads of each subject, measured alternately. */
  read(subjects: readonly string[], name: string, times: number): Promise<readonly (readonly number[])[]>;
  close(): Promise<void>;
}

export interface Dockets {
  readonly count: number;
  readonly transactions: number;
  /** Their predecessors may be anywhere in the history, not only among the latest. */
  readonly anywhere?: boolean;
}

interface Answer {
  readonly number?: number;
  readonly result?: unknown;
  readonly error?: string;
  readonly made?: number;
}

/** The program behind the subjects, which answers numbered requests over IPC. */
class Program {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #asked = 0;
  onMade: (made: number) => void = () => undefined;

  constructor(path: string) {
    this.#child = fork(path, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child.on('message', (answer: Answer) => this.#take(answer));
    this.#child.once('exit', (code) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the program ended with ${code}`));
    });
  }

  #take({ number = 0, result, error, made }: Answer): void {
    if (made !== undefined) this.onMade(made);
    const waiting = this.#waiting.get(number);
    if (waiting === undefined) return;
    this.#waiting.delete(number);
    if (error === undefined) waiting.resolve(result);
    else waiting.reject(new Error(error));
  }

  ask(question: Readonly<Record<string, unknown>>): Promise<unknown> {
    const waiting = Promise.withResolvers<unknown>();
    this.#asked += 1;
    this.#waiting.set(this.#asked, waiting);
    this.#child.send({ ...question, number: this.#asked }, (error) => {
      if (error !== null) waiting.reject(error);
    });
    return waiting.promise;
  }
}

async function createDatabase(url: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create database ${name} template template0`);
  await client.end();
}

/** Starts PostgreSQL and the register service. */
export async function openSubjects(): Promise<Subjects> {
  const dir = mkdtempSync(join(tmpdir(), 'chancery-bench-growth-'));
  const log = createLogger({ service: 'bench', level: 'silent' });
  const postgres = await startPostgres({ dataDir: join(dir, 'pg'), socketDir: join(dir, 's'), log });
  const program = new Program(path);
  const stored = async (question: Readonly<Record<string, unknown>>, { count, transactions }: Dockets) => {
    const before = treeCpuSeconds(postgres.pid);
    const service = (await program.ask(question)) as number;
    const database = (treeCpuSeconds(postgres.pid) - before) * 1e6;
    return { service: service / (count * transactions), database: database / (count * transactions) };
  };
  return {
    open: async (subject) => {
      await createDatabase(postgres.url('postgres'), subject);
      await program.ask({ act: 'open', subject, databaseUrl: postgres.url(subject) });
    },
    growTo: async (subject, count, onMade) => {
      program.onMade = onMade;
      await program.ask({ act: 'growTo', subject, count });
    },
    append: async (subject, dockets) => {
      await program.ask({ act: 'sign', subject, registers: 1, ...dockets });
      return stored({ act: 'append', subject }, dockets);
    },
    spread: async (subject, registers, dockets) => {
      await program.ask({ act: 'spread', subject, registers });
      await program.ask({ act: 'sign', subject, registers, ...dockets });
      return stored({ act: 'append', subject }, dockets);
    },
    reads: async () => (await program.ask({ act: 'reads' })) as string[],
    read: async (subjects, name, times) =>
      (await program.ask({ act: 'read', subjects, name, times })) as number[][],
    close: async () => {
      try {
        await program.ask({ act: 'stop' });
      } finally {
        await postgres.stop();
        rmSync(dir, { recursive: true, force: true });
      }
    },
  };
}
