import { duration } from './format.js';

/** Makes an element show how long ago something began, from now on; `age` in milliseconds. */
export function showAge(element: HTMLElement, age: number): void {
  element.dataset['since'] = String(performance.now() - age);
  show(element);
}

/** Keeps all ages of the page right. */
export function tickAges(): void {
  setInterval(() => document.querySelectorAll<HTMLElement>('[data-since]').forEach(show), 1_000);
}

function show(element: HTMLElement): void {
  const text = duration(performance.now() - Number(element.dataset['since']));
  if (element.textContent !== text) element.textContent = text;
}
