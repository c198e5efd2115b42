import process from 'node:process';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createOperator } from './compose.ts';
import { operatorSettings } from './config.ts';
import { controllers } from './controllers/controllers.ts';

await run({
  service: 'operator',
  schema: operatorSettings,
  // an orderly exit: the kubelet restarts the process, which then is a candidate again
  create: createOperator(controllers, () => void process.kill(process.pid, 'SIGTERM')),
});
