import fc from 'fast-check';
import { expect, it } from 'vitest';
import { statement } from './statement.ts';

it('numbers parameters by their first use', () => {
  const move = statement<{ to: string; id: number }>(
    'update t set place = :to, moved = place <> :to where id = :id',
  );
  expect(move({ id: 7, to: 'b' })).toEqual({
    text: 'update t set place = $1, moved = place <> $1 where id = $2',
    values: ['b', 7],
  });
});

it('leaves casts, literals and quoted names alone', () => {
  const sql = `select :a::bigint, a::text, ':b', 'it''s :c', "x:d", r->>'e:f' from t where a[1 : 2] = :a`;
  expect(statement<{ a: number }>(sql)({ a: 1 })).toEqual({
    text: `select $1::bigint, a::text, ':b', 'it''s :c', "x:d", r->>'e:f' from t where a[1 : 2] = $1`,
    values: [1],
  });
});

it('names the prepared statement', () => {
  expect(statement<object>('select 1', 'one')({})).toEqual({ text: 'select 1', values: [], name: 'one' });
  expect(statement<object>('select 1')({})).not.toHaveProperty('name');
});

it('refuses a parameter without a value, and takes null for one', () => {
  const find = statement<{ id?: number | null | undefined }>('select :id');
  expect(() => find({})).toThrow('The parameter :id has no value');
  expect(() => find({ id: undefined })).toThrow('The parameter :id has no value');
  expect(find({ id: null }).values).toEqual([null]);
});

it('knows own members of the values only', () => {
  expect(() => statement<object>('select :constructor')({})).toThrow(':constructor');
});

it('binds each parameter to its own value, in any order', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z][a-zA-Z0-9_]{0,8}$/), {
    minLength: 1,
    maxLength: 60,
  });
  fc.assert(
    fc.property(names, fc.infiniteStream(fc.nat()), (parameters, picks) => {
      const used = [
        ...parameters,
        ...parameters.map(() => parameters[(picks.next().value ?? 0) % parameters.length]),
      ];
      const { text, values } = statement<object>(used.map((one) => `:${one}`).join(', '))(
        Object.fromEntries(parameters.toReversed().map((one) => [one, `value of ${one}`])),
      );
      const read = text.split(', ').map((one) => values[Number(one.slice(1)) - 1]);
      expect(read).toEqual(used.map((one) => `value of ${one}`));
      expect(values).toHaveLength(parameters.length);
    }),
  );
});
