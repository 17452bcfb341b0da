import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { RunEvent } from '../../../src/index.js';
import { usePerson } from '../../local/pages/support.js';

/** The form of a site that asks for more than a program can do. */
export const LOGIN = `<!doctype html><title>Login</title>
<body style="margin:0;font:16px sans-serif">
<p><input id="name" placeholder="Name" style="width:200px;height:30px"> <input id="password" type="password" style="width:200px;height:30px"></p>
<p><select id="role" style="width:200px;height:30px"><option>Reader<option>Writer<option disabled>Nobody<option>Admin</select></p>
<p><input id="file" type="file" multiple style="width:300px;height:30px"></p>
<p><button id="ask" style="width:200px;height:30px" onclick="this.textContent=String(prompt('Your code?','none'))">Ask</button>
<button id="alert" style="width:200px;height:30px" onclick="alert('<b>Careful</b>');this.textContent='told'">Tell</button></p>
<p><button id="open" style="width:200px;height:30px" onclick="window.open('/popup')">Open</button>
<button id="go" style="width:200px;height:30px" onclick="document.title='Welcome '+document.querySelector('#name').value">Log in</button></p>`;

/** A person who opens the page of each hand-off that an event announces. */
export function useHandoffs() {
  const person = usePerson();
  const waiting: ((url: string) => void)[] = [];
  const urls: string[] = [];
  const onEvent = (event: RunEvent) => {
    if (event.type !== 'handoff') return;
    const take = waiting.shift();
    if (take) take(event.url);
    else urls.push(event.url);
  };
  const nextUrl = () =>
    new Promise<string>((resolve) => {
      const url = urls.shift();
      if (url === undefined) waiting.push(resolve);
      else resolve(url);
    });
  return {
    person,
    onEvent,
    nextUrl,
    /** Opens the page of the next hand-off. */
    open: async (options?: Parameters<typeof person.open>[1]) => person.open(await nextUrl(), options),
  };
}

/** Takes mouse and keyboard, when the first picture is there. */
export async function control(view: Page): Promise<void> {
  await expect
    .poll(async () => Number(await view.locator('canvas').getAttribute('data-pictures')))
    .toBeGreaterThan(0);
  await view.getByRole('button', { name: 'Use the browser' }).click();
  await view.getByText('In control').waitFor();
}

/** A place in the page of the browser, in CSS pixels. */
interface Place {
  readonly x: number;
  readonly y: number;
}

/** Clicks in the picture at a place of the page. The size of the page comes with the first picture. */
export async function clickAt(view: Page, { x, y }: Place, width: number): Promise<void> {
  const picture = (await view.locator('canvas').boundingBox())!;
  const scale = picture.width / width;
  await view.mouse.click(picture.x + x * scale, picture.y + y * scale);
}

export async function answer(view: Page, status: 'Done' | 'Cannot be done', note = ''): Promise<void> {
  await view.getByLabel('Note for the program').fill(note);
  await view.getByRole('button', { name: status, exact: true }).click();
  await view.getByRole('heading', { name: 'The hand-off is over' }).waitFor();
}

/** Answers without a page, as its script does. */
export async function reply(url: string, answer: object = { status: 'done', note: '' }): Promise<Response> {
  return fetch(`${url}answer`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: new URL(url).origin },
    body: JSON.stringify(answer),
  });
}

/** Whether a promise has settled after the messages that are under way have arrived. */
export async function isWaiting(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const settle = () => void (isSettled = true);
  promise.then(settle, settle);
  await new Promise((resolve) => setTimeout(resolve, 300));
  return !isSettled;
}
