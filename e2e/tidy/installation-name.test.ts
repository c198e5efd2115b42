import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { INSTALLATION_NAME } from '#core/identity/well-known.ts';
import { commonSettings } from '#kit/config/config.ts';
import { root } from './repository.ts';

const read = (path: string): string => readFileSync(join(root, path), 'utf8');

describe('the name of an installation has one form', () => {
  it('in the settings of every process', () => {
    const pattern = (text: string) => commonSettings.CHANCERY_INSTALLATION.safeParse(text).success;
    for (const text of ['a', 'dev-local', 'acme.chancery.local', 'a'.repeat(63)]) {
      expect([text, pattern(text), INSTALLATION_NAME.test(text)]).toEqual([text, true, true]);
    }
    for (const text of ['', 'Dev', '.a', 'a.', '-a', 'a_b', 'a/b', 'a'.repeat(64)]) {
      expect([text, pattern(text), INSTALLATION_NAME.test(text)]).toEqual([text, false, false]);
    }
    // kit/config is part of an image with a pinned digest and has the pattern as text
    expect(read('components/kit/config/config.ts')).toContain(`.regex(/${INSTALLATION_NAME.source}/`);
  });

  it("in the chart's values, where an empty name is the default one, and in its check", () => {
    const schema = JSON.parse(read('charts/chancery/values.schema.json'));
    expect(schema.properties.installation.pattern).toBe(`^$|${INSTALLATION_NAME.source}`);
    expect(read('charts/chancery/templates/checks.yaml')).toContain(
      `regexMatch "${INSTALLATION_NAME.source}" (include "chancery.installation" .)`,
    );
  });
});
