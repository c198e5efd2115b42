import { stdout } from 'node:process';
import { Worker } from 'node:worker_threads';
import { nameThread } from './threads/pool.ts';

// A program to bundle: a lazy part, a thread named by URL, a package required by name.
const load = async () => (await import('./lazy.ts')).greeting;
new Worker(nameThread()).on('message', (text: string) => {
  void load().then((greeting) => stdout.write(`${greeting} ${text}\n`));
});
