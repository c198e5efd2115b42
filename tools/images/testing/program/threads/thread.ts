import { parentPort } from 'node:worker_threads';
import { title } from '../title.ts';

parentPort?.postMessage(title);
