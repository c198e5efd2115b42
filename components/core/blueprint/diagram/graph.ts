import type { Action, Blueprint } from '../model/blueprint.ts';

/** What an instance has done with an action. */
export type ActionMark = 'done' | 'current' | 'blocked' | 'timedOut';

/** Marks by the id of the action; an action without one is only described. */
export type ActionMarks = ReadonlyMap<number, ActionMark>;

/** What a diagram needs of a definition. */
export type DiagramSource = {
  readonly title: string;
  readonly participants: readonly Pick<Blueprint['participants'][number], 'id' | 'name'>[];
  readonly actions: readonly Pick<
    Action,
    'id' | 'title' | 'sender' | 'isStartingAction' | 'routes' | 'rejectionConfig'
  >[];
};

export interface DiagramNode {
  readonly key: string;
  readonly kind: 'start' | 'action' | 'end';
  readonly title: string;
  /** Name of the participant that acts; empty for start and end. */
  readonly actor: string;
  readonly mark: ActionMark | undefined;
}

export interface DiagramEdge {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly kind: 'route' | 'default' | 'rejection';
}

interface DiagramGraph {
  readonly nodes: readonly DiagramNode[];
  readonly edges: readonly DiagramEdge[];
}

const START = 'start';
const END = 'end';

/** Signs that tell marks apart without their colours. */
export const MARK_SIGNS: Readonly<Record<ActionMark, { readonly sign: string; readonly text: string }>> = {
  done: { sign: '✓', text: 'done' },
  current: { sign: '▶', text: 'current' },
  blocked: { sign: '⏸', text: 'blocked' },
  timedOut: { sign: '⌛', text: 'timed out' },
};

/** The actions of a definition with their routes and rejections, in the order of the definition. */
export function buildGraph({ participants, actions }: DiagramSource, marks: ActionMarks): DiagramGraph {
  const names = new Map(participants.map(({ id, name }) => [id, name]));
  const known = new Set(actions.map(({ id }) => id));
  const edges = [
    ...actions.filter(({ isStartingAction }) => isStartingAction === true).map(startEdge),
    ...actions.flatMap((action) => [...routeEdges(action), ...rejectionEdges(action)]),
  ].filter(({ to }) => to === END || known.has(Number(to.slice(1))));
  const nodes: DiagramNode[] = actions.map(({ id, title, sender }) => ({
    key: keyOf(id),
    kind: 'action',
    title,
    actor: names.get(sender) ?? sender,
    mark: marks.get(id),
  }));
  const ends = edges.some(({ to }) => to === END) ? [terminal(END, 'End')] : [];
  return { nodes: [terminal(START, 'Start'), ...nodes, ...ends], edges };
}

function keyOf(actionId: number): string {
  return `a${actionId}`;
}

function terminal(key: typeof START | typeof END, title: string): DiagramNode {
  return { key, kind: key, title, actor: '', mark: undefined };
}

function startEdge({ id }: { readonly id: number }): DiagramEdge {
  return { from: START, to: keyOf(id), label: '', kind: 'route' };
}

function routeEdges({ id, routes = [] }: DiagramSource['actions'][number]): DiagramEdge[] {
  if (routes.length === 0) return [{ from: keyOf(id), to: END, label: '', kind: 'route' }];
  return routes.flatMap((route) => {
    const targets = route.nextActionIds.length === 0 ? [END] : route.nextActionIds.map(keyOf);
    const kind = route.isDefault === true ? 'default' : 'route';
    return targets.map((to): DiagramEdge => ({ from: keyOf(id), to, label: route.id, kind }));
  });
}

function rejectionEdges({ id, rejectionConfig }: DiagramSource['actions'][number]): DiagramEdge[] {
  if (rejectionConfig === undefined) return [];
  const { isTerminal, targetActionId } = rejectionConfig;
  if (isTerminal === true) return [{ from: keyOf(id), to: END, label: 'rejection', kind: 'rejection' }];
  if (targetActionId === undefined) return [];
  return [{ from: keyOf(id), to: keyOf(targetActionId), label: 'rejection', kind: 'rejection' }];
}
