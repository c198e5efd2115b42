import { describe, expect, test } from 'vitest';
import { parseOptions } from './options.ts';

describe('the command line of local mode', () => {
  test('has defaults', () => {
    expect(parseOptions([])).toEqual({ dataDir: '.chancery', port: 8080, processes: false });
  });

  test('takes what it names', () => {
    const args = ['--data', '/somewhere', '--port', '0', '--processes'];
    expect(parseOptions(args)).toEqual({ dataDir: '/somewhere', port: 0, processes: true });
  });

  test.each([[['--port', '70000']], [['--port', 'x']], [['--nonsense']], [['stray']]])(
    'refuses %j',
    (args) => {
      expect(() => parseOptions(args)).toThrow();
    },
  );
});
