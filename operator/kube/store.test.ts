import { expect, test } from 'vitest';
import type { KubeObject } from './resource.ts';
import { byOwner, type Change, ownerIndex, Store } from './store.ts';
import { make, widgets } from './testing/fixtures.ts';

function widget(name: string, resourceVersion: string, owner?: string): KubeObject {
  const ownerReferences =
    owner === undefined ? [] : [{ apiVersion: 'v1', kind: 'Set', name: 'set', uid: owner }];
  return make(widgets, name, {}, { uid: `uid-${name}`, resourceVersion, ownerReferences });
}

function open() {
  const faults: unknown[] = [];
  const changes: string[] = [];
  const store = new Store({ [ownerIndex]: byOwner }, (fault) => faults.push(fault));
  store.subscribe(({ type, key }: Change) => changes.push(`${type} ${key}`));
  return { store, faults, changes };
}

const names = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name).sort();

test('listeners are notified of changes, but not of a known version', () => {
  const { store, changes } = open();
  store.put(widget('a', '1'));
  store.put(widget('a', '1'));
  store.put(widget('a', '2'));
  store.remove(widget('b', '9'));
  store.remove(widget('a', '3'));
  expect(changes).toEqual(['added acme/a', 'updated acme/a', 'deleted acme/a']);
  expect(store.size).toBe(0);
});

test('a complete list removes objects that are not in it', () => {
  const { store, changes } = open();
  store.put(widget('a', '1'));
  store.put(widget('b', '2'));
  changes.length = 0;
  store.replace([widget('b', '2'), widget('c', '4')]);
  expect(changes).toEqual(['deleted acme/a', 'added acme/c']);
  expect(names(store.list())).toEqual(['b', 'c']);
});

test('a complete list of one namespace does not affect others', () => {
  const { store } = open();
  store.put(widget('a', '1'));
  store.put(make(widgets, 'b', {}, { namespace: 'other', resourceVersion: '2' }));
  store.replace([], 'acme');
  expect(names(store.list())).toEqual(['b']);
});

test('an index follows every change', () => {
  const { store } = open();
  store.put(widget('a', '1', 'x'));
  store.put(widget('b', '2', 'x'));
  expect(names(store.findBy(ownerIndex, 'x'))).toEqual(['a', 'b']);
  store.put(widget('a', '3', 'y'));
  expect(names(store.findBy(ownerIndex, 'x'))).toEqual(['b']);
  expect(names(store.findBy(ownerIndex, 'y'))).toEqual(['a']);
  store.remove(widget('a', '4', 'y'));
  expect(store.findBy(ownerIndex, 'y')).toEqual([]);
  expect(store.findBy('none', 'y')).toEqual([]);
});

test('a throwing listener affects neither the store nor other listeners', () => {
  const { store, faults } = open();
  const seen: string[] = [];
  const fault = new Error('listener');
  store.subscribe(() => {
    throw fault;
  });
  const end = store.subscribe(({ key }) => seen.push(key));
  store.put(widget('a', '1'));
  end();
  store.put(widget('a', '2'));
  expect(seen).toEqual(['acme/a']);
  expect(faults).toEqual([fault, fault]);
});
