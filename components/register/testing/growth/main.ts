import { type DocketsToSign, type ReadName, readNames, Subject } from './subject.ts';

/** Requests over IPC, answered with the same number. */
type Request = { readonly number: number } & (
  | { readonly act: 'open'; readonly subject: string; readonly databaseUrl: string }
  | { readonly act: 'growTo'; readonly subject: string; readonly count: number }
  | ({ readonly act: 'sign'; readonly subject: string } & DocketsToSign)
  | { readonly act: 'append'; readonly subject: string }
  | { readonly act: 'spread'; readonly subject: string; readonly registers: number }
  | {
      readonly act: 'read';
      readonly subjects: readonly string[];
      readonly name: ReadName;
      readonly times: number;
    }
  | { readonly act: 'reads' | 'stop' }
);

const subjects = new Map<string, Subject>();

function find(name: string): Subject {
  const subject = subjects.get(name);
  if (subject === undefined) throw new Error(`${name} is not open`);
  return subject;
}

/** Milliseconds of each subject's reads; subjects alternate, so that other load of the machine affects all of them. */
async function readByTurns(
  each: readonly Subject[],
  name: ReadName,
  times: number,
): Promise<readonly (readonly number[])[]> {
  const took = each.map((): number[] => []);
  for (let n = 0; n < times; n += 1) {
    for (const [place, subject] of each.entries()) took[place]?.push(await subject.read(name, n));
  }
  return took;
}

async function answer(request: Request): Promise<unknown> {
  switch (request.act) {
    case 'open':
      subjects.set(request.subject, await Subject.open(request.databaseUrl));
      return undefined;
    case 'growTo':
      return find(request.subject).growTo(request.count, (made) => send({ made }));
    case 'sign':
      return find(request.subject).sign(request);
    case 'spread':
      return find(request.subject).openMore(request.registers);
    case 'append':
      return find(request.subject).append();
    case 'read':
      return readByTurns(request.subjects.map(find), request.name, request.times);
    case 'reads':
      return readNames;
    case 'stop':
      await Promise.all([...subjects.values()].map((subject) => subject.stop()));
      return undefined;
  }
}

const send = (message: object): void => void process.send?.(message);

async function reply(request: Request): Promise<void> {
  const { number } = request;
  try {
    const result = await answer(request);
    send({ number, result });
  } catch (error) {
    send({ number, error: error instanceof Error ? error.stack : String(error) });
  }
  if (request.act === 'stop') process.disconnect?.();
}

process.on('message', (request: Request) => void reply(request));
