import { parentPort, workerData } from 'node:worker_threads';
import { ListFault, malformed } from '../values/fault.ts';
import { prepareLibrary } from '../xml/verify.ts';
import type { ReadingOutcome, ReadingTask } from './messages.ts';
import { readList } from './read-list.ts';

// A thread that reads one list and ends. Outside a thread it does nothing: the build of the images loads every module once.
if (parentPort !== null) {
  prepareLibrary();
  parentPort.postMessage(await outcomeOf(workerData as ReadingTask));
}

/** Whatever a document makes the libraries throw is its fault: the service continues. */
async function outcomeOf({ document, pin }: ReadingTask): Promise<ReadingOutcome> {
  try {
    return { list: await readList(document, pin) };
  } catch (error) {
    const fault = error instanceof ListFault ? error : malformed('the list cannot be read');
    return { fault: fault.kind, message: fault.message };
  }
}
