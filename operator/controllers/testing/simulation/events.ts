import fc from 'fast-check';
import { configMaps, pods, services, statefulSets } from '../../../kube/kinds.ts';
import type { Resource } from '../../../kube/resource.ts';
import { registers, tenants, validatorSets } from '../../reconciler/resources.ts';
import type { World } from './world.ts';

type Spec = Readonly<Record<string, unknown>>;

/** A kind with a second object that is created and deleted repeatedly. */
type SecondKind = 'Tenant' | 'Register' | 'ValidatorSet';

/** An event of the simulation. */
export type SimulationEvent =
  | { readonly what: 'rename' | 'suspend' | 'retitle' | 'policy'; readonly to: number }
  | { readonly what: 'scale'; readonly to: number }
  | { readonly what: 'version'; readonly to: number; readonly isBad: boolean }
  | { readonly what: 'grow' }
  | { readonly what: 'lose' | 'cut'; readonly ordinal: number }
  | { readonly what: 'delete' | 'remake'; readonly kind: SecondKind }
  | { readonly what: 'meddle' | 'strip'; readonly place: number }
  | { readonly what: 'trouble'; readonly share: number; readonly lagMs: number; readonly isAway: boolean }
  | { readonly what: 'crash'; readonly call: number; readonly isBefore: boolean }
  | { readonly what: 'freeze'; readonly afterMs: number; readonly seconds: number }
  | { readonly what: 'break' | 'compact' | 'mute' | 'deafen' }
  | { readonly what: 'heal' }
  | { readonly what: 'pass'; readonly seconds: number };

const small = fc.nat({ max: 9 });
const is = <const What extends string>(...what: readonly What[]) => fc.constantFrom(...what);

/** Events, weighted by their relevance. */
export const simulationEvents: fc.Arbitrary<SimulationEvent> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: is('rename', 'suspend', 'retitle', 'policy'), to: small }) },
  { weight: 3, arbitrary: fc.record({ what: is('scale'), to: fc.integer({ min: 1, max: 7 }) }) },
  { weight: 2, arbitrary: fc.record({ what: is('version'), to: small, isBad: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ what: is('grow') }) },
  { weight: 3, arbitrary: fc.record({ what: is('lose', 'cut'), ordinal: fc.nat({ max: 6 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: is('delete', 'remake'),
      kind: fc.constantFrom<SecondKind>('Tenant', 'Register', 'ValidatorSet'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: is('meddle', 'strip'), place: small }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: is('trouble'),
      share: fc.constantFrom(0, 0.02, 0.05),
      lagMs: fc.constantFrom(0, 2_000, 10_000),
      isAway: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      what: is('crash'),
      call: fc.integer({ min: 1, max: 40 }),
      isBefore: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: is('freeze'),
      afterMs: fc.nat({ max: 40 }),
      seconds: fc.integer({ min: 1, max: 40 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: is('break', 'compact', 'mute', 'deafen') }) },
  { weight: 2, arbitrary: fc.record({ what: is('heal') }) },
  { weight: 8, arbitrary: fc.record({ what: is('pass'), seconds: fc.integer({ min: 1, max: 60 }) }) },
);

/** The second object of a kind, with its spec for the nth creation: each has another policy and another name in the services. */
const seconds: Readonly<
  Record<
    SecondKind,
    { readonly resource: Resource; readonly name: string; readonly spec: (time: number) => Spec }
  >
> = {
  Tenant: {
    resource: tenants,
    name: 'beta',
    spec: (time) => ({
      displayName: 'Beta',
      subdomain: `beta-${time}`,
      deletionPolicy: ['Suspend', 'Retain', 'Delete'][time % 3],
    }),
  },
  Register: {
    resource: registers,
    name: 'bills',
    spec: (time) => ({ ...register('Bills'), deletionPolicy: ['Retain', 'Tombstone', 'Purge'][time % 3] }),
  },
  ValidatorSet: { resource: validatorSets, name: 'spare', spec: () => ({ replicas: 1 }) },
};

/** The desired state: two Tenants, two Registers of one set, and an unused set. */
export class Installation {
  readonly #world: World;
  readonly #draw: () => number;
  #set: { replicas: number; image: string; size: number } = {
    replicas: 4,
    image: 'registry.test/v:1',
    size: 1,
  };
  #remakes = 0;

  constructor(world: World, draw: () => number) {
    this.#world = world;
    this.#draw = draw;
  }

  /** Creates all objects. */
  begin(): void {
    this.#world.put(tenants, 'acme', { displayName: 'Acme', subdomain: 'acme' });
    this.#applySet();
    this.#world.put(registers, 'invoices', register('Invoices'));
    for (const kind of Object.keys(seconds) as SecondKind[]) this.#make(kind);
  }

  /** Ends all faults and makes the desired state reachable. */
  end(): void {
    this.#world.calm();
    const { replicas } = this.#set;
    this.#set = { ...this.#set, replicas: Math.max(4, replicas), image: 'registry.test/v:9' };
    this.#applySet();
    this.#merge(tenants, 'acme', { suspended: false });
    for (const kind of Object.keys(seconds) as SecondKind[]) this.#make(kind);
  }

  /** Desired replicas of the set. */
  get replicas(): number {
    return this.#set.replicas;
  }

  get image(): string {
    return this.#set.image;
  }

  async apply(event: SimulationEvent): Promise<void> {
    const world = this.#world;
    switch (event.what) {
      case 'rename':
        return this.#merge(tenants, 'acme', { displayName: `Acme ${event.to}` });
      case 'suspend':
        return this.#merge(tenants, 'acme', { suspended: event.to > 4 });
      case 'retitle':
        return this.#merge(registers, 'invoices', { title: `Invoices ${event.to}` });
      case 'policy': {
        const policy = { consensus: { docketBuildIntervalMs: 500 + event.to } };
        return this.#merge(registers, 'invoices', { policy });
      }
      case 'scale':
        this.#set.replicas = event.to;
        return this.#applySet();
      case 'version':
        this.#set.image = `registry.test/v:${event.isBad ? 'bad-' : ''}${event.to}`;
        return this.#applySet();
      case 'grow':
        this.#set.size += 1;
        return this.#applySet();
      case 'lose':
      case 'cut':
        return world.lose(`main-${event.ordinal}`, event.what);
      case 'delete':
        return this.#delete(event.kind);
      case 'remake':
        return this.#make(event.kind);
      case 'meddle':
        return world.editByHand(services, (all) => all[event.place % Math.max(1, all.length)]);
      case 'strip':
        return this.#strip(event.place);
      case 'trouble':
        world.faults = { ...event, draw: this.#draw };
        return;
      case 'crash':
        return world.crashAt(event.call, event.isBefore);
      case 'freeze':
        return this.#freeze(event);
      case 'break':
      case 'compact':
      case 'mute':
      case 'deafen':
        return world.breakWatches(event.what);
      case 'heal':
        return world.calm();
      case 'pass':
        return world.pass(event.seconds * 1_000);
    }
  }

  async #freeze({ afterMs, seconds }: Extract<SimulationEvent, { what: 'freeze' }>): Promise<void> {
    const { leader, timing } = this.#world;
    // in the middle of its work
    await timing.advance(afterMs);
    leader?.freeze();
    await this.#world.pass(seconds * 1_000);
    leader?.thaw();
  }

  #applySet(): void {
    const { replicas, image, size } = this.#set;
    const update = { minReadySeconds: 2 };
    this.#world.put(validatorSets, 'main', { replicas, image, update, storage: { size: `${size}Gi` } });
  }

  #merge(resource: Resource, name: string, change: Spec): void {
    const before = this.#world.kubernetes.find(resource, name)?.['spec'];
    this.#world.put(resource, name, { ...(before as Spec), ...change });
  }

  #delete(kind: SecondKind): void {
    const { resource, name } = seconds[kind];
    this.#world.kubernetes.delete(resource, name);
  }

  /** Creates the second object of a kind unless it exists. */
  #make(kind: SecondKind): void {
    const { resource, name, spec } = seconds[kind];
    if (this.#world.kubernetes.find(resource, name) !== undefined) return;
    this.#remakes += 1;
    this.#world.put(resource, name, spec(this.#remakes));
  }

  /** Deletes a child as a person would. */
  #strip(place: number): void {
    const kinds = [services, configMaps, statefulSets, pods];
    const resource = kinds[place % kinds.length] ?? services;
    const name = resource === configMaps ? 'main-config' : resource === pods ? 'main-0' : 'main';
    if (resource === pods) this.#world.lose(name, 'lose');
    else if (resource === statefulSets) this.#world.orphanSet(name);
    else this.#world.kubernetes.delete(resource, name);
  }
}

function register(title: string) {
  return { title, tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } };
}
