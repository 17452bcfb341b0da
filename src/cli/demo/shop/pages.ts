import { formatPrice, products, type Product } from './products.js';
import { STYLE } from './style.js';

export function frontPage(): string {
  const cards = products.map(
    ({ id, name, picture, price }) => `
      <li>
        <span class="picture">${picture}</span>
        <a href="/${id}">${name}</a>
        <span>${formatPrice(price)}</span>
      </li>`,
  );
  return page('The Little Shop', `<ul>${cards.join('')}</ul>`);
}

export function productPage({ id, name, picture, price, text }: Product): string {
  const form = `
    <form method="post" action="/${id}">
      <label for="name">Your name</label>
      <input id="name" name="name" required autocomplete="off">
      <button>Order</button>
    </form>`;
  return page(name, `<span class="picture">${picture}</span><p>${text} ${formatPrice(price)}</p>${form}`);
}

export function receiptPage({ name, picture, price }: Product, order: number, customer: string): string {
  const receipt = `Order ${order} for ${escape(customer)}: ${name}, ${formatPrice(price)}`;
  return page('Thank you!', `<span class="picture">${picture}</span><p id="receipt">${receipt}</p>`);
}

export function notFoundPage(): string {
  return page('Not found', '<p>There is no such page. <a href="/">Back to the shop</a></p>');
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>${title}</title><style>${STYLE}</style></head>
  <body><main><h1>${title}</h1>${body}</main></body>
</html>`;
}

/** What a visitor typed must stay text. */
function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
