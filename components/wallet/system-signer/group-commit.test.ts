import { describe, expect, test } from 'vitest';
import { GroupCommit } from './group-commit.ts';

interface Row {
  readonly key: string;
  readonly n: number;
}

/** A group commit whose statements end when the test says so. */
function open(limit = 10) {
  const statements: { readonly rows: readonly Row[]; end(effective: readonly string[] | Error): void }[] = [];
  const commits = new GroupCommit<Row>({
    limit,
    keyOf: ({ key }) => key,
    commit: (rows) => {
      const { promise, resolve, reject } = Promise.withResolvers<ReadonlySet<string>>();
      const end = (effective: readonly string[] | Error) =>
        effective instanceof Error ? reject(effective) : resolve(new Set(effective));
      statements.push({ rows, end });
      return promise;
    },
  });
  const statement = (index: number) => {
    const found = statements[index];
    if (found === undefined) throw new Error(`there is no statement ${index}`);
    return found;
  };
  return { commits, statements, statement };
}

/** Runs all callbacks of settled promises. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

const namesOf = (rows: readonly Row[]) => rows.map(({ key, n }) => `${key}${n}`);

describe('group commit', () => {
  test('the first row is committed at once, those that arrive meanwhile in one statement', async () => {
    const { commits, statements, statement } = open();
    const outcomes = [commits.add({ key: 'a', n: 1 })];
    for (const key of ['b', 'c', 'd']) outcomes.push(commits.add({ key, n: 1 }));
    expect(namesOf(statement(0).rows)).toEqual(['a1']);
    statement(0).end(['a']);
    await nextTurn();
    expect(namesOf(statement(1).rows)).toEqual(['b1', 'c1', 'd1']);
    statement(1).end(['b', 'd']);
    expect(await Promise.all(outcomes)).toEqual([true, true, false, true]);
    expect(statements).toHaveLength(2);
  });

  test('rows of one key keep their order and never share a statement', async () => {
    const { commits, statements, statement } = open();
    const outcomes = [1, 2, 3].map((n) => commits.add({ key: 'a', n }));
    outcomes.push(commits.add({ key: 'b', n: 1 }));
    for (let index = 0; index < 3; index += 1) {
      statement(index).end(index === 1 ? ['b'] : ['a']);
      await nextTurn();
    }
    expect(statements.map(({ rows }) => namesOf(rows))).toEqual([['a1'], ['a2', 'b1'], ['a3']]);
    expect(await Promise.all(outcomes)).toEqual([true, false, true, true]);
  });

  test('a statement holds at most its limit of rows', async () => {
    const { commits, statements, statement } = open(2);
    const outcomes = ['a', 'b', 'c', 'd'].map((key) => commits.add({ key, n: 1 }));
    for (let index = 0; index < 3; index += 1) {
      statement(index).end(['a', 'b', 'c', 'd']);
      await nextTurn();
    }
    expect(statements.map(({ rows }) => namesOf(rows))).toEqual([['a1'], ['b1', 'c1'], ['d1']]);
    expect(await Promise.all(outcomes)).toEqual([true, true, true, true]);
  });

  test('an error of a statement is that of its rows alone', async () => {
    const { commits, statement } = open();
    const outcomes = Promise.allSettled(['a', 'b', 'c'].map((key) => commits.add({ key, n: 1 })));
    statement(0).end(['a']);
    await nextTurn();
    statement(1).end(new Error('the database is away'));
    await nextTurn();
    const later = commits.add({ key: 'b', n: 2 });
    statement(2).end(['b']);
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(await later).toBe(true);
  });
});
