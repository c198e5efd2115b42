import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { execute } from '../programs.ts';

const project = fileURLToPath(new URL('../java/multipaz-wallet', import.meta.url));
const built = fileURLToPath(new URL('../../../dist/multipaz-wallet', import.meta.url));
const neededJava = 21;

const receivedSchema = z.object({
  kind: z.string(),
  claims: z.record(z.string(), z.unknown()),
  faults: z.array(z.string()),
  warnings: z.array(z.string()),
});
const answerSchema = z.union([
  z.strictObject({ authorize: z.string() }),
  z.strictObject({ credentials: z.array(receivedSchema) }),
  z.strictObject({ redirect: z.string().nullable() }),
  z.strictObject({ error: z.string() }),
]);

type Answer = z.output<typeof answerSchema>;

/** A credential as Multipaz reads it, with the faults that it finds. */
export type Received = z.output<typeof receivedSchema>;

/** Folder of a Java that is not that of the path. */
const javaHome = process.env['CHANCERY_TEST_JAVA_HOME'];
const javaCommand = javaHome === undefined ? 'java' : join(javaHome, 'bin/java');

/** Why Multipaz cannot run here; undefined when it can. */
export async function missingForMultipaz(): Promise<string | undefined> {
  const java = await execute(javaCommand, ['--version']).catch(() => undefined);
  const [, version] = /^\S+ (\d+)/.exec(java?.output ?? '') ?? [];
  if (version === undefined) return 'no Java';
  if (Number(version) < neededJava) return `Java ${version}, which is older than ${neededJava}`;
  const maven = await execute('mvn', ['--version']).catch(() => undefined);
  return maven?.code === 0 ? undefined : 'no Maven';
}

/** Compiles the wallet and gathers the jars that it needs; what Maven printed when it cannot. */
export async function buildWallet(): Promise<string | undefined> {
  const home = javaHome === undefined ? [] : [`JAVA_HOME=${javaHome}`];
  const goal = ['--batch-mode', '--quiet', '--file', join(project, 'pom.xml'), 'process-classes'];
  const { code, output } = await execute('env', [...home, 'mvn', ...goal]);
  return code === 0 ? undefined : output;
}

/** A running wallet of Multipaz. */
export class MultipazWallet implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #log: string[] = [];

  /** @param makerFile PEM of the key and the certificate that the wallet and its keys are attested with */
  constructor(makerFile: string) {
    const classPath = `${join(built, 'classes')}:${join(built, 'lib/*')}`;
    const child = spawn(javaCommand, ['-cp', classPath, 'MainKt', makerFile], { stdio: 'pipe' });
    createInterface({ input: child.stderr }).on('line', (line) => this.#log.push(line));
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    this.#child = child;
  }

  /**
   * Takes an offer.
   * @param approve what the person does in the browser: given the address, gives where the page sends them
   */
  async take(offer: string, approve: (url: string) => Promise<string>): Promise<readonly Received[]> {
    const asked = await this.#ask({ do: 'take', offer });
    if (!('authorize' in asked)) throw new Error(`expected an address: ${JSON.stringify(asked)}`);
    return this.#receive({ redirect: await approve(asked.authorize) });
  }

  /** Gets one more copy of the credential that was taken last, by its refresh token; all copies. */
  renew(): Promise<readonly Received[]> {
    return this.#receive({ do: 'renew' });
  }

  /** Answers a request of a verifier. */
  async present(request: string): Promise<void> {
    const answer = await this.#ask({ do: 'present', request });
    if (!('redirect' in answer)) throw new Error(`expected an end: ${JSON.stringify(answer)}`);
  }

  /** What the wallet logged last. */
  log(): string {
    return this.#log.slice(-40).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
  }

  async #receive(command: object): Promise<readonly Received[]> {
    const answer = await this.#ask(command);
    if (!('credentials' in answer)) throw new Error(`expected credentials: ${JSON.stringify(answer)}`);
    return answer.credentials;
  }

  async #ask(command: object): Promise<Exclude<Answer, { error: string }>> {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error(`the wallet has ended:\n${this.log()}`);
    const answer = answerSchema.parse(JSON.parse(value));
    if ('error' in answer) throw new Error(`${answer.error}\n${this.log()}`);
    return answer;
  }
}
