// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Uses the page of a graph as a reader does, behind the page's own script: every edge tells its reason under the mouse,
// every node what it is; search finds by name; a click dims what has nothing to do with a task. The title says the result.
'use strict';
(()=>{
const faults=window.pageErrors||[];
const fault=text=>faults.push(text);
const over=element=>{
  element.dispatchEvent(new MouseEvent('mousemove',{bubbles:true,clientX:600,clientY:300}));
  const text=tip.style.display==='block'?tip.textContent:'';
  element.dispatchEvent(new MouseEvent('mouseleave',{bubbles:true}));
  if(tip.style.display!=='none')fault('details stay when the mouse has gone');
  return text};
const reason=/^.+ -> .+\n(read after write|write after read|write after write|named by the program|all memory).*; ./;
let hovered=0;
for(const hit of document.querySelectorAll('.hit')){
  const text=over(hit);
  if(reason.test(text))hovered++;else fault(`an edge says '${text}'`)}
for(const [i,node] of drawnNodes.entries())if(!over(node).startsWith(graph.nodes[i][2]))fault(`node ${i} does not say its name`);
$('search').value=graph.nodes[0][2];
$('search').dispatchEvent(new Event('input'));
if(!/^[1-9]\d* found$/.test($('found').textContent)||!document.querySelector('.match'))fault('search finds nothing');
$('search').value='';
$('search').dispatchEvent(new Event('input'));
const last=graph.edges[graph.edges.length-1][1];
drawnNodes[last].dispatchEvent(new MouseEvent('click',{bubbles:true}));
if(drawnNodes[last].classList.contains('dim')||!drawnNodes.some(n=>n.classList.contains('dim')))fault('a click selects nothing');
view.dispatchEvent(new MouseEvent('click',{bubbles:true}));
if(document.querySelector('.dim'))fault('what was dimmed stays');
for(const n of graph.nodes)if(n[0]<0||n[1]<0||n[0]>graph.width||n[1]>graph.height)fault('a node lies outside');
for(const e of document.querySelectorAll('[src],link,script[src],image'))fault(`a reference to ${e.outerHTML}`);
document.title=faults.length?'FAULT '+faults.slice(0,3).join(' / '):`${hovered} edges told their reasons`;
})();
