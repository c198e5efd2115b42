import { parentPort, workerData } from 'node:worker_threads';
import { ListFault, malformed } from '../values/fault.ts';
import { prepareLibrary } from '../xml/verify.ts';
import type { ReadingOutcome, ReadingTask } from './messages.ts';
import { readList } from './read-list.ts';

// A thread that reads one list and ends. Whatever a document makes the libraries throw is its fault: the service continues.
prepareLibrary();
const { document, pin } = workerData as ReadingTask;
parentPort?.postMessage(await outcomeOf());

async function outcomeOf(): Promise<ReadingOutcome> {
  try {
    return { list: await readList(document, pin) };
  } catch (error) {
    const fault = error instanceof ListFault ? error : malformed('the list cannot be read');
    return { fault: fault.kind, message: fault.message };
  }
}
