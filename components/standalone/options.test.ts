import { describe, expect, test } from 'vitest';
import { parseEndpoints, parseOptions } from './options.ts';

describe('the command line of local mode', () => {
  test('has defaults', () => {
    expect(parseOptions([])).toEqual({ dataDir: '.chancery', port: 8080, processes: false });
  });

  test('parses every option', () => {
    const args = ['--data', '/somewhere', '--port', '0', '--processes', '--validators', '7'];
    expect(parseOptions(args)).toEqual({
      dataDir: '/somewhere',
      port: 0,
      processes: true,
      validators: 7,
    });
    expect(parseOptions(['--again', 'validator-1']).again).toBe('validator-1');
  });

  test.each([[['--port', '70000']], [['--port', 'x']], [['--nonsense']], [['stray']]])(
    'refuses %j',
    (args) => {
      expect(() => parseOptions(args)).toThrow();
    },
  );

  test.each(['0', '8', '2.5', 'four', ''])('refuses %j validators with one clear line', (text) => {
    expect(() => parseOptions(['--validators', text])).toThrow(
      `--validators takes a number from 1 to 7, not ${text}`,
    );
  });

  test('parses the addresses that validators announce, and refuses invalid ones', () => {
    expect(parseEndpoints('127.0.0.1:7001, proxy.test:7002')).toEqual(['127.0.0.1:7001', 'proxy.test:7002']);
    for (const text of ['127.0.0.1', 'a:1,', 'a:0', 'a:1 b:2']) {
      expect(() => parseEndpoints(text)).toThrow(/CHANCERY_VALIDATOR_ENDPOINTS takes host:port/);
    }
  });
});
