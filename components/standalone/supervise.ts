import type { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import { localError } from './errors.ts';
import type { Launch, Running } from './launch.ts';
import type { ProcessPlan } from './layout.ts';

/** A change of one of several validators. */
export interface FleetEvent {
  readonly name: string;
  /** Why it ended; undefined when it runs again. */
  readonly reason: string | undefined;
  /** Number of running validators, and of all. */
  readonly running: number;
  readonly planned: number;
}

interface SuperviseOptions {
  readonly launch: Launch;
  readonly cleanup: Cleanup;
  /** Called after each stage, before the next one starts. */
  readonly afterStage: (stage: readonly ProcessPlan[]) => Promise<void>;
  /** Called when one of several validators ended or runs again. */
  readonly onChange: (event: FleetEvent) => void;
}

/** The processes of local mode while they run. */
export interface Supervision {
  /** The running processes, in start order. */
  running(): readonly Running[];
  /** Resolves with a line for people when an essential process ended. */
  readonly broken: Promise<string>;
  /**
   * Restarts a validator that ended; resolves with its process id when it is ready.
   * @throws AppError not_found UNKNOWN_VALIDATOR, conflict VALIDATOR_RUNS, or the error of its start
   */
  again(name: string): Promise<number>;
}

interface Slot {
  readonly plan: ProcessPlan;
  current: Promise<Running> | undefined;
  running: Running | undefined;
}

/**
 * Starts the processes in stages. When one ends, all are stopped. With several validators, the end of one does not stop
 * the others, and it may be restarted.
 */
export async function supervise(
  stages: readonly (readonly ProcessPlan[])[],
  options: SuperviseOptions,
): Promise<Supervision> {
  const { launch, cleanup, afterStage, onChange } = options;
  const slots: Slot[] = [];
  const broken = Promise.withResolvers<string>();
  const validators = stages.flat().filter(({ service }) => service === 'validator').length;
  const mayEnd = ({ service }: ProcessPlan): boolean => service === 'validator' && validators > 1;
  let stopping = false;

  const report = (name: string, reason: string | undefined): void => {
    const running = slots.filter(
      ({ plan, running }) => plan.service === 'validator' && running !== undefined,
    );
    onChange({ name, reason, running: running.length, planned: validators });
  };

  function onEnded(slot: Slot, reason: string): void {
    if (stopping) return;
    slot.current = undefined;
    slot.running = undefined;
    if (mayEnd(slot.plan)) report(slot.plan.name, reason);
    else broken.resolve(`${slot.plan.name} ended: ${reason}`);
  }

  async function start(slot: Slot): Promise<Running> {
    slot.current = launch(slot.plan);
    try {
      const running = await slot.current;
      slot.running = running;
      void running.ended.then((reason) => onEnded(slot, reason));
      return running;
    } catch (error) {
      slot.current = undefined;
      throw error;
    }
  }

  async function stop(slot: Slot): Promise<void> {
    stopping = true;
    const running = await slot.current?.catch(() => undefined);
    await running?.stop();
  }

  for (const stage of stages) {
    const begun = stage.map((plan): Slot => ({ plan, current: undefined, running: undefined }));
    slots.push(...begun);
    cleanup.add(stage.map(({ name }) => name).join(), async () => {
      await Promise.all(begun.map(stop));
    });
    await Promise.all(begun.map(start));
    await afterStage(stage);
  }
  return {
    running: () => slots.flatMap((slot) => slot.running ?? []),
    broken: broken.promise,
    async again(name) {
      const slot = slots.find(({ plan }) => plan.name === name && mayEnd(plan));
      if (slot === undefined)
        throw localError('UNKNOWN_VALIDATOR', `${name} is not one of several validators here`);
      if (slot.current !== undefined) throw localError('VALIDATOR_RUNS', `${name} runs already`);
      const { pid } = await start(slot);
      report(name, undefined);
      return pid;
    },
  };
}
