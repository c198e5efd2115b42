import { createServer, type Server } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { type ProcessStart, startLike, startOnFreePorts } from './running-process.ts';

/** A program that is ready at once, and ends as a component does when its port is taken or it cannot run. */
const program = `
  if (process.env.BROKEN) { console.log('it is broken'); process.exit(1); }
  const server = require('node:http').createServer((request, answer) => answer.end('own'));
  server.once('error', (error) => process.exit(error.code === 'EADDRINUSE' ? 69 : 1));
  server.listen(Number(process.env.CHANCERY_OPS_PORT), '127.0.0.1', () => process.send('started'));`;
const start: ProcessStart = { program: process.execPath, words: ['-e', program], env: {} };

/** Another process, which answers at a port as a component does that is ready. */
function occupy(port: string | undefined): Server {
  const server = createServer((_request, answer) => answer.end('other'));
  server.listen(Number(port), '127.0.0.1');
  onTestFinished(() => void server.close());
  return server;
}

const textAt = async (port: string | undefined) => (await fetch(`http://127.0.0.1:${port}/`)).text();

test('a process whose port another one binds first is started on another port', async () => {
  const chosen: (string | undefined)[] = [];
  const own = await startOnFreePorts(start, ['CHANCERY_OPS_PORT'], ({ CHANCERY_OPS_PORT: port }) => {
    chosen.push(port);
    if (chosen.length <= 2) occupy(port);
    return {};
  });
  onTestFinished(() => own.kill());
  expect(chosen).toHaveLength(3);
  expect(own.ports).toEqual({ CHANCERY_OPS_PORT: chosen[2] });
  expect(await Promise.all(chosen.map(textAt))).toEqual(['other', 'other', 'own']);
});

test('a process whose given port is held for a moment is started when it is free', async () => {
  const first = await startOnFreePorts(start, ['CHANCERY_OPS_PORT']);
  const { ports } = first;
  await first.kill();
  const other = occupy(ports['CHANCERY_OPS_PORT']);
  setTimeout(() => {
    other.close();
    other.closeAllConnections();
  }, 300);
  const own = await startLike(start, ports);
  onTestFinished(() => own.kill());
  expect(await textAt(ports['CHANCERY_OPS_PORT'])).toBe('own');
});

test('a process that ends is an error at once, with its output', async () => {
  const starting = startOnFreePorts(start, ['CHANCERY_OPS_PORT'], () => ({ BROKEN: '1' }));
  await expect(starting).rejects.toThrow('it is broken');
});
