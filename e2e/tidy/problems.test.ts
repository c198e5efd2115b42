import { describe, expect, it } from 'vitest';
import { problemSchema } from '#kit/http/http.ts';
import { isTest, listSources, ownerOf } from './repository.ts';

/** Details that are in no HTTP answer: those of internal errors, of gRPC calls and of the command line. */
const elsewhere = new Set(['docketNumber', 'file', 'kekId', 'place', 'signed', 'walletId']);

interface Detail {
  readonly path: string;
  readonly name: string;
}

function namesIn(members: string): string[] {
  return members
    .split(',')
    .map((member) => member.split(':')[0]?.trim() ?? '')
    .filter((name) => name !== '' && !name.startsWith('...'));
}

/** Members of the details of thrown refusals. Elsewhere in the tenant service `details` are those of audit events. */
function detailsOf(path: string, text: string): Detail[] {
  const forms =
    ownerOf(path) === 'tenant'
      ? [/refusal\('\w+', \{\s*details: \{([^{}]*)/g]
      : [/\bdetails: \{([^{}]*)/g, /refuse\('\w+', \{([^{}]*)\}/g];
  return forms.flatMap((form) =>
    [...text.matchAll(form)].flatMap((match) => namesIn(match[1] ?? '').map((name) => ({ path, name }))),
  );
}

describe('members of problems', () => {
  const owners = new Set([
    'core',
    'blueprint',
    'credential',
    'gateway',
    'register',
    'svid-issuer',
    'tenant',
    'validator',
    'wallet',
  ]);
  const details = listSources()
    .filter(({ path }) => owners.has(ownerOf(path) ?? '') && !isTest(path))
    .flatMap(({ path, text }) => detailsOf(path, text));

  it('examines something', () => {
    const names = new Set(details.map(({ name }) => name));
    for (const name of ['bound', 'contexts', 'errors', 'fields', 'subjects', 'validationDuration']) {
      expect(names).toContain(name);
    }
  });

  it('are declared in the schema of problems', () => {
    const undeclared = details.filter(
      ({ name }) => !Object.hasOwn(problemSchema.shape, name) && !elsewhere.has(name),
    );
    expect(undeclared).toEqual([]);
  });
});
