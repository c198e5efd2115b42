import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { SourceRecords } from './sources.ts';

const folder = mkdtempSync(join(tmpdir(), 'sources-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('knows a result until one of its files changes or is gone', () => {
  const file = join(folder, 'a.ts');
  writeFileSync(file, 'one');
  const records = new SourceRecords(join(folder, 'records'));
  expect(records.find('main')).toBeUndefined();
  records.save('main', 'key', [file]);
  expect(records.find('main')).toBe('key');
  expect(records.find('other')).toBeUndefined();
  writeFileSync(file, 'two');
  expect(records.find('main')).toBeUndefined();
  rmSync(file);
  expect(records.find('main')).toBeUndefined();
});
