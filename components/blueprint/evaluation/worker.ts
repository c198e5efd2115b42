import { parentPort } from 'node:worker_threads';
import { smallDefinition } from './small-definition.ts';
import { runTask } from './tasks.ts';

// A thread that handles one definition of a client after another: JSON text in, JSON text out. It is ended when one takes
// too long.
parentPort?.on('message', (task: string) => {
  parentPort?.postMessage(JSON.stringify(runTask(JSON.parse(task))));
});
// The first definition finds the program compiled.
runTask({ kind: 'judge', credentials: false, definition: JSON.stringify(smallDefinition) });
parentPort?.postMessage('ready');
