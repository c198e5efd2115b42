import { describe, expect, it } from 'vitest';
import { createLogger, type LogLevel } from './log.ts';

function capture(level: LogLevel = 'info') {
  const lines: string[] = [];
  const log = createLogger({
    service: 'service-test',
    level,
    destination: { write: (line) => void lines.push(line) },
  });
  return { log, lines };
}

describe('createLogger', () => {
  it('writes JSON with service, level name and ISO time', () => {
    const { log, lines } = capture();
    log.info({ txId: 'ab' }, 'sealed');
    const line = JSON.parse(lines[0] ?? '');
    expect(line).toMatchObject({ service: 'service-test', level: 'info', txId: 'ab', msg: 'sealed' });
    expect(new Date(line.time).toISOString()).toBe(line.time);
  });

  it('omits messages below its level', () => {
    const { log, lines } = capture('warn');
    log.info('quiet');
    expect(lines).toEqual([]);
  });

  it('writes errors with their causes', () => {
    const { log, lines } = capture();
    log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
    expect(lines[0]).toContain('inner');
  });

  it('redacts secrets by name, at the top and one level down', () => {
    const { log, lines } = capture();
    log.info({ password: 'hunter2', user: { accessToken: 'hunter2', mnemonic: 'hunter2' } }, 'given');
    log.info({ req: { headers: { authorization: 'hunter2', 'x-subject-token': 'hunter2' } } }, 'asked');
    expect(lines.join('')).not.toContain('hunter2');
    expect(lines.join('')).toContain('[redacted]');
  });
});
