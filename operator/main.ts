import process from 'node:process';
import { run } from '#kit/lifecycle/lifecycle.ts';
import { createOperator } from './compose.ts';
import { operatorSettings } from './config.ts';
import { controllers } from './controllers/controllers.ts';

await run({
  service: 'operator',
  schema: operatorSettings,
  // an orderly end: the kubelet starts the process anew, and it stands by
  create: createOperator(controllers, () => void process.kill(process.pid, 'SIGTERM')),
});
